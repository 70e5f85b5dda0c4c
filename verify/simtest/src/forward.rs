//! The primitives that none of the wrappers in here changes.

/// Those of [`os::Os`] that neither open a file, mount a volume, nor answer WMI or the clock, handed on to `self.inner`.
macro_rules! forward_the_rest {
    () => {
        fn device_interfaces(&self, class: Uuid) -> OsResult<Vec<U16String>> {
            self.inner.device_interfaces(class)
        }

        fn reenumerate(&self, interface: &U16Str) -> OsResult<()> {
            self.inner.reenumerate(interface)
        }

        fn volumes(&self) -> OsResult<Vec<U16String>> {
            self.inner.volumes()
        }

        fn volume_paths(&self, volume: &U16Str) -> OsResult<Vec<U16String>> {
            self.inner.volume_paths(volume)
        }

        fn open_service(&self, name: &U16Str, access: ServiceAccess) -> OsResult<Box<dyn Service>> {
            self.inner.open_service(name, access)
        }

        fn firmware_table(&self, provider: u32, table: u32, output: &mut [u8]) -> OsResult<usize> {
            self.inner.firmware_table(provider, table, output)
        }
    };
}

/// The mounting and unmounting of volumes, handed on to `self.inner`.
macro_rules! forward_mounting {
    () => {
        fn set_volume_mount_point(&self, directory: &U16Str, volume: &U16Str) -> OsResult<()> {
            self.inner.set_volume_mount_point(directory, volume)
        }

        fn delete_volume_mount_point(&self, directory: &U16Str) -> OsResult<()> {
            self.inner.delete_volume_mount_point(directory)
        }
    };
}

pub(crate) use {forward_mounting, forward_the_rest};
