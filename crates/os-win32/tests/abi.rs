//! Checks of `os::abi` and of the other numbers in `os`, when this test is compiled.
//!
//! The crate `os` defines Windows' structures and constants itself. The assertions below compare
//! each with windows-sys, which is generated from Microsoft's metadata.
#![cfg(windows)]
#![allow(
    unsafe_code,
    reason = "sizes of fields are taken from pointers that are never read"
)]

use std::mem::offset_of;

use os::abi::{self, ControlCode};
use os::{Access, FileInfo, FsInfo, Options, OsError, PathForm, Share};
use windows_sys::Wdk::Storage::FileSystem as nt;
use windows_sys::Wdk::System::SystemServices as nt_services;
use windows_sys::Win32::Foundation as win32;
use windows_sys::Win32::Security as security;
use windows_sys::Win32::Storage::FileSystem as fs;
use windows_sys::Win32::System::Ioctl as ioctl;
use windows_sys::Win32::System::Rpc as rpc;
use windows_sys::Win32::System::SystemInformation as firmware;
use windows_sys::Win32::System::SystemServices as services;
use windows_sys::Win32::System::Wmi as wbem;
use windows_sys::core::GUID;

/// Asserts that both structures have the same size, and that the fields of each pair have the same
/// offset and size.
macro_rules! same {
    ($ours:ty, $theirs:ty, { $($our_field:tt : $($their_field:tt).+),* $(,)? }) => {
        const _: () = assert!(size_of::<$ours>() == size_of::<$theirs>(), stringify!($ours));
        same_fields!($ours, $theirs, { $($our_field: $($their_field).+),* });
    };
}

/// Asserts that the fields of each pair have the same offset and size, for the heads of structures
/// of variable length.
macro_rules! same_fields {
    ($ours:ty, $theirs:ty, { $($our_field:tt : $($their_field:tt).+),* $(,)? }) => {
        const _: () = {
            $(
                assert!(
                    offset_of!($ours, $our_field) == offset_of!($theirs, $($their_field).+),
                    concat!(stringify!($ours), ".", stringify!($our_field)),
                );
                assert!(
                    // SAFETY: the closure is never called.
                    field_size(|ours: *const $ours| unsafe { &raw const (*ours).$our_field })
                        // SAFETY: the closure is never called.
                        == field_size(|theirs: *const $theirs| unsafe { &raw const (*theirs).$($their_field).+ }),
                    concat!("size of ", stringify!($ours), ".", stringify!($our_field)),
                );
            )*
        };
    };
}

/// Returns the size of the field that a projection returns. Does not call the projection.
const fn field_size<Whole, Field>(_: fn(*const Whole) -> *const Field) -> usize {
    size_of::<Field>()
}

macro_rules! same_numbers {
    ($($ours:expr => $theirs:expr),* $(,)?) => {
        $(const _: () = assert!($ours as i128 == $theirs as i128, stringify!($ours));)*
    };
}

// Control codes.
same_numbers! {
    ControlCode::STORAGE_GET_DEVICE_NUMBER.0 => ioctl::IOCTL_STORAGE_GET_DEVICE_NUMBER,
    ControlCode::STORAGE_QUERY_PROPERTY.0 => ioctl::IOCTL_STORAGE_QUERY_PROPERTY,
    ControlCode::DISK_GET_DRIVE_GEOMETRY_EX.0 => ioctl::IOCTL_DISK_GET_DRIVE_GEOMETRY_EX,
    ControlCode::DISK_GET_LENGTH_INFO.0 => ioctl::IOCTL_DISK_GET_LENGTH_INFO,
    ControlCode::DISK_GET_DISK_ATTRIBUTES.0 => ioctl::IOCTL_DISK_GET_DISK_ATTRIBUTES,
    ControlCode::DISK_SET_DISK_ATTRIBUTES.0 => ioctl::IOCTL_DISK_SET_DISK_ATTRIBUTES,
    ControlCode::DISK_GET_DRIVE_LAYOUT_EX.0 => ioctl::IOCTL_DISK_GET_DRIVE_LAYOUT_EX,
    ControlCode::DISK_UPDATE_PROPERTIES.0 => ioctl::IOCTL_DISK_UPDATE_PROPERTIES,
    ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS.0 => fs::IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS,
    ControlCode::FSCTL_EXTEND_VOLUME.0 => ioctl::FSCTL_EXTEND_VOLUME,
    ControlCode::FSCTL_LOCK_VOLUME.0 => ioctl::FSCTL_LOCK_VOLUME,
    ControlCode::FSCTL_QUERY_FILE_SYSTEM_RECOGNITION.0 => ioctl::FSCTL_QUERY_FILE_SYSTEM_RECOGNITION,
    ControlCode::FSCTL_GET_REPARSE_POINT.0 => ioctl::FSCTL_GET_REPARSE_POINT,
    ControlCode::FSCTL_SET_REPARSE_POINT.0 => ioctl::FSCTL_SET_REPARSE_POINT,
}
/// A code that is added to `os::abi` must be added above.
const _: () = assert!(ControlCode::ALL.len() == 14);

// The parameters of calls.
same_numbers! {
    Access::READ_DATA.bits() => fs::FILE_READ_DATA,
    Access::WRITE_DATA.bits() => fs::FILE_WRITE_DATA,
    Access::READ_ATTRIBUTES.bits() => fs::FILE_READ_ATTRIBUTES,
    Access::WRITE_ATTRIBUTES.bits() => fs::FILE_WRITE_ATTRIBUTES,
    Access::DELETE.bits() => fs::DELETE,
    Access::GENERIC_READ.bits() => win32::GENERIC_READ,
    Access::GENERIC_WRITE.bits() => win32::GENERIC_WRITE,
    Share::READ.bits() => fs::FILE_SHARE_READ,
    Share::WRITE.bits() => fs::FILE_SHARE_WRITE,
    Share::DELETE.bits() => fs::FILE_SHARE_DELETE,
    Options::COMPLETE_IF_OPLOCKED.bits() => nt::FILE_COMPLETE_IF_OPLOCKED,
    Options::DIRECTORY.bits() => nt::FILE_DIRECTORY_FILE,
    Options::NON_DIRECTORY.bits() => nt::FILE_NON_DIRECTORY_FILE,
    Options::REPARSE_POINT.bits() => nt::FILE_OPEN_REPARSE_POINT,
    FileInfo::Basic => fs::FileBasicInfo,
    FileInfo::Disposition => fs::FileDispositionInfo,
    FileInfo::Stream => fs::FileStreamInfo,
    FileInfo::AttributeTag => fs::FileAttributeTagInfo,
    FileInfo::Id => fs::FileIdInfo,
    FileInfo::DispositionEx => fs::FileDispositionInfoEx,
    FsInfo::Attribute => nt::FileFsAttributeInformation,
    FsInfo::FullSize => nt::FileFsFullSizeInformation,
    PathForm::Dos => fs::VOLUME_NAME_DOS,
    PathForm::VolumeGuid => fs::VOLUME_NAME_GUID,
    PathForm::Device => fs::VOLUME_NAME_NT,
    abi::FIRMWARE_SMBIOS => firmware::RSMB,
    abi::FILE_WRITE_DATA => fs::FILE_ADD_FILE,
    abi::FILE_APPEND_DATA => fs::FILE_ADD_SUBDIRECTORY,
    abi::FILE_DELETE_CHILD => fs::FILE_DELETE_CHILD,
    abi::FILE_WRITE_ATTRIBUTES => fs::FILE_WRITE_ATTRIBUTES,
    abi::DELETE => fs::DELETE,
    abi::WRITE_DAC => fs::WRITE_DAC,
    abi::WRITE_OWNER => fs::WRITE_OWNER,
    abi::GENERIC_ALL => win32::GENERIC_ALL,
    abi::GENERIC_WRITE => win32::GENERIC_WRITE,
    abi::ENTRY_INHERIT_ONLY => security::INHERIT_ONLY_ACE,
}

// Constants inside the buffers.
same_numbers! {
    abi::PartitionStyle::MBR.0 => ioctl::PARTITION_STYLE_MBR,
    abi::PartitionStyle::GPT.0 => ioctl::PARTITION_STYLE_GPT,
    abi::PartitionStyle::RAW.0 => ioctl::PARTITION_STYLE_RAW,
    abi::DiskAttributes::OFFLINE => ioctl::DISK_ATTRIBUTE_OFFLINE,
    abi::DiskAttributes::READ_ONLY => ioctl::DISK_ATTRIBUTE_READ_ONLY,
    abi::FILE_ATTRIBUTE_READONLY => fs::FILE_ATTRIBUTE_READONLY,
    abi::FILE_ATTRIBUTE_DIRECTORY => fs::FILE_ATTRIBUTE_DIRECTORY,
    abi::FILE_ATTRIBUTE_NORMAL => fs::FILE_ATTRIBUTE_NORMAL,
    abi::FILE_ATTRIBUTE_REPARSE_POINT => fs::FILE_ATTRIBUTE_REPARSE_POINT,
    abi::FILE_DISPOSITION_DELETE => fs::FILE_DISPOSITION_FLAG_DELETE,
    abi::FILE_DISPOSITION_POSIX => fs::FILE_DISPOSITION_FLAG_POSIX_SEMANTICS,
    abi::FILE_DISPOSITION_IGNORE_READONLY => fs::FILE_DISPOSITION_FLAG_IGNORE_READONLY_ATTRIBUTE,
    abi::REPARSE_TAG_SYMLINK => services::IO_REPARSE_TAG_SYMLINK,
    abi::REPARSE_TAG_MOUNT_POINT => services::IO_REPARSE_TAG_MOUNT_POINT,
    abi::SYMLINK_RELATIVE => nt::SYMLINK_FLAG_RELATIVE,
    abi::FsAttributeInformation::NAMED_STREAMS => services::FILE_NAMED_STREAMS,
    abi::FsAttributeInformation::SUPPORTS_REPARSE_POINTS => services::FILE_SUPPORTS_REPARSE_POINTS,
    abi::FsAttributeInformation::READ_ONLY_VOLUME => services::FILE_READ_ONLY_VOLUME,
    abi::DEVICE_TYPE_DISK => fs::FILE_DEVICE_DISK,
    abi::CODE_SET_BINARY => ioctl::StorageIdCodeSetBinary,
    abi::CODE_SET_ASCII => ioctl::StorageIdCodeSetAscii,
    abi::ASSOCIATION_DEVICE => ioctl::StorageIdAssocDevice,
    abi::StoragePropertyQuery::DEVICE => ioctl::StorageDeviceProperty,
    abi::StoragePropertyQuery::DEVICE_ID => ioctl::StorageDeviceIdProperty,
    abi::BusType::SCSI.0 => fs::BusTypeScsi,
    abi::BusType::ISCSI.0 => fs::BusTypeiScsi,
    abi::BusType::SAS.0 => fs::BusTypeSas,
    abi::BusType::SATA.0 => fs::BusTypeSata,
    abi::BusType::FILE_BACKED_VIRTUAL.0 => fs::BusTypeFileBackedVirtual,
    abi::BusType::SPACES.0 => fs::BusTypeSpaces,
    abi::BusType::NVME.0 => fs::BusTypeNvme,
}

const fn same_guid(ours: os::Uuid, theirs: GUID) -> bool {
    let ours = GUID::from_u128(ours.as_u128());
    ours.data1 == theirs.data1
        && ours.data2 == theirs.data2
        && ours.data3 == theirs.data3
        && u64::from_ne_bytes(ours.data4) == u64::from_ne_bytes(theirs.data4)
}
const _: () = assert!(same_guid(abi::BASIC_DATA, fs::PARTITION_BASIC_DATA_GUID));
const _: () = assert!(same_guid(
    abi::MSFT_RESERVED,
    fs::PARTITION_MSFT_RESERVED_GUID
));
const _: () = assert!(same_guid(
    abi::DISK_INTERFACE,
    ioctl::GUID_DEVINTERFACE_DISK
));
const _: () = assert!(same_guid(
    abi::STORAGE_PORT_INTERFACE,
    ioctl::GUID_DEVINTERFACE_STORAGEPORT
));

// Disks.
same!(abi::LengthInformation, ioctl::GET_LENGTH_INFORMATION, { length: Length });
same_fields!(abi::DiskGeometryEx, ioctl::DISK_GEOMETRY_EX, {
    cylinders: Geometry.Cylinders,
    media_type: Geometry.MediaType,
    tracks_per_cylinder: Geometry.TracksPerCylinder,
    sectors_per_track: Geometry.SectorsPerTrack,
    bytes_per_sector: Geometry.BytesPerSector,
    disk_size: DiskSize,
});
same!(abi::DiskAttributes, ioctl::GET_DISK_ATTRIBUTES, {
    version: Version, reserved: Reserved1, attributes: Attributes,
});
same!(abi::SetDiskAttributes, ioctl::SET_DISK_ATTRIBUTES, {
    version: Version,
    persist: Persist,
    reserved1: Reserved1,
    attributes: Attributes,
    attributes_mask: AttributesMask,
    reserved2: Reserved2,
});
same_fields!(abi::DriveLayout, ioctl::DRIVE_LAYOUT_INFORMATION_EX, {
    style: PartitionStyle,
    partition_count: PartitionCount,
    disk_id: Anonymous.Gpt.DiskId,
    usable_offset: Anonymous.Gpt.StartingUsableOffset,
    usable_length: Anonymous.Gpt.UsableLength,
    max_partition_count: Anonymous.Gpt.MaxPartitionCount,
});
/// The entries begin where the head ends.
const _: () = assert!(
    size_of::<abi::DriveLayout>() == offset_of!(ioctl::DRIVE_LAYOUT_INFORMATION_EX, PartitionEntry)
);
same!(abi::PartitionEntry, ioctl::PARTITION_INFORMATION_EX, {
    style: PartitionStyle,
    offset: StartingOffset,
    length: PartitionLength,
    number: PartitionNumber,
    rewrite: RewritePartition,
    is_service: IsServicePartition,
    partition_type: Anonymous.Gpt.PartitionType,
    id: Anonymous.Gpt.PartitionId,
    attributes: Anonymous.Gpt.Attributes,
    name: Anonymous.Gpt.Name,
});
/// The type, boot indicator and "recognized" of an MBR entry are the first bytes of the same union.
const _: () = assert!(
    offset_of!(abi::PartitionEntry, partition_type)
        == offset_of!(ioctl::PARTITION_INFORMATION_EX, Anonymous.Mbr.PartitionType)
        && offset_of!(ioctl::PARTITION_INFORMATION_MBR, PartitionType) == 0
        && offset_of!(ioctl::PARTITION_INFORMATION_MBR, BootIndicator) == 1
        && offset_of!(ioctl::PARTITION_INFORMATION_MBR, RecognizedPartition) == 2
);
/// The signature of an MBR disk is the first four bytes of the same union.
const _: () = assert!(
    offset_of!(abi::DriveLayout, disk_id)
        == offset_of!(ioctl::DRIVE_LAYOUT_INFORMATION_EX, Anonymous.Mbr.Signature)
);

// Storage devices.
same!(abi::StorageDeviceNumber, ioctl::STORAGE_DEVICE_NUMBER, {
    device_type: DeviceType, device_number: DeviceNumber, partition_number: PartitionNumber,
});
same!(abi::StoragePropertyQuery, ioctl::STORAGE_PROPERTY_QUERY, { property_id: PropertyId, query_type: QueryType });
same!(abi::StorageDescriptorHead, ioctl::STORAGE_DESCRIPTOR_HEADER, { version: Version, size: Size });
same_fields!(abi::StorageDeviceDescriptor, ioctl::STORAGE_DEVICE_DESCRIPTOR, {
    device_type: DeviceType,
    device_type_modifier: DeviceTypeModifier,
    removable_media: RemovableMedia,
    command_queueing: CommandQueueing,
    vendor_id_offset: VendorIdOffset,
    product_id_offset: ProductIdOffset,
    product_revision_offset: ProductRevisionOffset,
    serial_number_offset: SerialNumberOffset,
    bus_type: BusType,
    raw_properties_length: RawPropertiesLength,
});
same_fields!(abi::StorageDeviceIdDescriptor, ioctl::STORAGE_DEVICE_ID_DESCRIPTOR, {
    number_of_identifiers: NumberOfIdentifiers,
});
/// The identifiers begin where the head ends.
const _: () = assert!(
    size_of::<abi::StorageDeviceIdDescriptor>()
        == offset_of!(ioctl::STORAGE_DEVICE_ID_DESCRIPTOR, Identifiers)
);
same_fields!(abi::StorageIdentifier, ioctl::STORAGE_IDENTIFIER, {
    code_set: CodeSet,
    identifier_type: Type,
    identifier_size: IdentifierSize,
    next_offset: NextOffset,
    association: Association,
});
const _: () = assert!(
    size_of::<abi::StorageIdentifier>() == offset_of!(ioctl::STORAGE_IDENTIFIER, Identifier)
);

// Volumes.
same_fields!(abi::VolumeDiskExtents, ioctl::VOLUME_DISK_EXTENTS, { count: NumberOfDiskExtents });
const _: () =
    assert!(size_of::<abi::VolumeDiskExtents>() == offset_of!(ioctl::VOLUME_DISK_EXTENTS, Extents));
same!(abi::DiskExtent, ioctl::DISK_EXTENT, {
    disk_number: DiskNumber, offset: StartingOffset, length: ExtentLength,
});
same!(abi::FsFullSizeInformation, nt_services::FILE_FS_FULL_SIZE_INFORMATION, {
    total_units: TotalAllocationUnits,
    caller_available_units: CallerAvailableAllocationUnits,
    available_units: ActualAvailableAllocationUnits,
    sectors_per_unit: SectorsPerAllocationUnit,
    bytes_per_sector: BytesPerSector,
});
same_fields!(abi::FsAttributeInformation, nt::FILE_FS_ATTRIBUTE_INFORMATION, {
    attributes: FileSystemAttributes,
    maximum_component_length: MaximumComponentNameLength,
    name_length: FileSystemNameLength,
});
const _: () = assert!(
    abi::FsAttributeInformation::NAME_OFFSET
        == offset_of!(nt::FILE_FS_ATTRIBUTE_INFORMATION, FileSystemName)
);

// Files.
same!(abi::FileBasicInfo, fs::FILE_BASIC_INFO, {
    creation_time: CreationTime,
    last_access_time: LastAccessTime,
    last_write_time: LastWriteTime,
    change_time: ChangeTime,
    attributes: FileAttributes,
});
same!(abi::FileAttributeTagInfo, fs::FILE_ATTRIBUTE_TAG_INFO, { attributes: FileAttributes, reparse_tag: ReparseTag });
same!(abi::FileIdInfo, fs::FILE_ID_INFO, { volume_serial_number: VolumeSerialNumber, file_id: FileId });
same!(abi::FileDispositionInfo, fs::FILE_DISPOSITION_INFO, { delete_file: DeleteFile });
same!(abi::FileDispositionInfoEx, fs::FILE_DISPOSITION_INFO_EX, { flags: Flags });
same_fields!(abi::FileIdBothDirInfo, fs::FILE_ID_BOTH_DIR_INFO, {
    next_entry_offset: NextEntryOffset,
    file_index: FileIndex,
    creation_time: CreationTime,
    last_access_time: LastAccessTime,
    last_write_time: LastWriteTime,
    change_time: ChangeTime,
    end_of_file: EndOfFile,
    allocation_size: AllocationSize,
    attributes: FileAttributes,
    file_name_length: FileNameLength,
    ea_size: EaSize,
    short_name_length: ShortNameLength,
    short_name: ShortName,
    file_id: FileId,
});
const _: () =
    assert!(abi::FileIdBothDirInfo::NAME_OFFSET == offset_of!(fs::FILE_ID_BOTH_DIR_INFO, FileName));
same_fields!(abi::FileStreamInfo, fs::FILE_STREAM_INFO, {
    next_entry_offset: NextEntryOffset,
    name_length: StreamNameLength,
    size: StreamSize,
    allocation_size: StreamAllocationSize,
});
const _: () =
    assert!(abi::FileStreamInfo::NAME_OFFSET == offset_of!(fs::FILE_STREAM_INFO, StreamName));

// Reparse points. `os` has separate structures for the data of each tag, windows-sys a union after
// the head.
type TheirLink = nt::REPARSE_DATA_BUFFER_0_0;
type TheirMountPoint = nt::REPARSE_DATA_BUFFER_0_1;
same_fields!(abi::ReparseHead, nt::REPARSE_DATA_BUFFER, {
    tag: ReparseTag, data_length: ReparseDataLength, reserved: Reserved,
});
const _: () =
    assert!(size_of::<abi::ReparseHead>() == offset_of!(nt::REPARSE_DATA_BUFFER, Anonymous));
same_fields!(abi::SymlinkReparse, TheirLink, {
    substitute_offset: SubstituteNameOffset,
    substitute_length: SubstituteNameLength,
    print_offset: PrintNameOffset,
    print_length: PrintNameLength,
    flags: Flags,
});
const _: () = assert!(size_of::<abi::SymlinkReparse>() == offset_of!(TheirLink, PathBuffer));
same_fields!(abi::MountPointReparse, TheirMountPoint, {
    substitute_offset: SubstituteNameOffset,
    substitute_length: SubstituteNameLength,
    print_offset: PrintNameOffset,
    print_length: PrintNameLength,
});
const _: () =
    assert!(size_of::<abi::MountPointReparse>() == offset_of!(TheirMountPoint, PathBuffer));

// The named codes of `OsError`.
same_numbers! {
    OsError::INVALID_FUNCTION.0 => win32::ERROR_INVALID_FUNCTION,
    OsError::FILE_NOT_FOUND.0 => win32::ERROR_FILE_NOT_FOUND,
    OsError::PATH_NOT_FOUND.0 => win32::ERROR_PATH_NOT_FOUND,
    OsError::ACCESS_DENIED.0 => win32::ERROR_ACCESS_DENIED,
    OsError::NO_MORE_FILES.0 => win32::ERROR_NO_MORE_FILES,
    OsError::WRITE_PROTECT.0 => win32::ERROR_WRITE_PROTECT,
    OsError::NOT_READY.0 => win32::ERROR_NOT_READY,
    OsError::BAD_LENGTH.0 => win32::ERROR_BAD_LENGTH,
    OsError::SHARING_VIOLATION.0 => win32::ERROR_SHARING_VIOLATION,
    OsError::NOT_SUPPORTED.0 => win32::ERROR_NOT_SUPPORTED,
    OsError::INVALID_PARAMETER.0 => win32::ERROR_INVALID_PARAMETER,
    OsError::CALL_NOT_IMPLEMENTED.0 => win32::ERROR_CALL_NOT_IMPLEMENTED,
    OsError::SEM_TIMEOUT.0 => win32::ERROR_SEM_TIMEOUT,
    OsError::INSUFFICIENT_BUFFER.0 => win32::ERROR_INSUFFICIENT_BUFFER,
    OsError::INVALID_NAME.0 => win32::ERROR_INVALID_NAME,
    OsError::DIR_NOT_EMPTY.0 => win32::ERROR_DIR_NOT_EMPTY,
    OsError::BUSY.0 => win32::ERROR_BUSY,
    OsError::ALREADY_EXISTS.0 => win32::ERROR_ALREADY_EXISTS,
    OsError::FILENAME_EXCED_RANGE.0 => win32::ERROR_FILENAME_EXCED_RANGE,
    OsError::MORE_DATA.0 => win32::ERROR_MORE_DATA,
    OsError::WAIT_TIMEOUT.0 => win32::WAIT_TIMEOUT,
    OsError::DIRECTORY.0 => win32::ERROR_DIRECTORY,
    OsError::DELETE_PENDING.0 => win32::ERROR_DELETE_PENDING,
    OsError::OPLOCK_BREAK_IN_PROGRESS.0 => win32::ERROR_OPLOCK_BREAK_IN_PROGRESS,
    OsError::OPERATION_ABORTED.0 => win32::ERROR_OPERATION_ABORTED,
    OsError::UNRECOGNIZED_VOLUME.0 => win32::ERROR_UNRECOGNIZED_VOLUME,
    OsError::DEPENDENT_SERVICES_RUNNING.0 => win32::ERROR_DEPENDENT_SERVICES_RUNNING,
    OsError::INVALID_SERVICE_CONTROL.0 => win32::ERROR_INVALID_SERVICE_CONTROL,
    OsError::SERVICE_REQUEST_TIMEOUT.0 => win32::ERROR_SERVICE_REQUEST_TIMEOUT,
    OsError::SERVICE_ALREADY_RUNNING.0 => win32::ERROR_SERVICE_ALREADY_RUNNING,
    OsError::SERVICE_DISABLED.0 => win32::ERROR_SERVICE_DISABLED,
    OsError::SERVICE_DOES_NOT_EXIST.0 => win32::ERROR_SERVICE_DOES_NOT_EXIST,
    OsError::SERVICE_CANNOT_ACCEPT_CTRL.0 => win32::ERROR_SERVICE_CANNOT_ACCEPT_CTRL,
    OsError::SERVICE_NOT_ACTIVE.0 => win32::ERROR_SERVICE_NOT_ACTIVE,
    OsError::IO_DEVICE.0 => win32::ERROR_IO_DEVICE,
    OsError::DEVICE_NOT_CONNECTED.0 => win32::ERROR_DEVICE_NOT_CONNECTED,
    OsError::SESSION_CREDENTIAL_CONFLICT.0 => win32::ERROR_SESSION_CREDENTIAL_CONFLICT,
    OsError::NO_SUCH_LOGON_SESSION.0 => win32::ERROR_NO_SUCH_LOGON_SESSION,
    OsError::PRIVILEGE_NOT_HELD.0 => win32::ERROR_PRIVILEGE_NOT_HELD,
    OsError::LOGON_FAILURE.0 => win32::ERROR_LOGON_FAILURE,
    OsError::ACCOUNT_RESTRICTION.0 => win32::ERROR_ACCOUNT_RESTRICTION,
    OsError::FILE_CORRUPT.0 => win32::ERROR_FILE_CORRUPT,
    OsError::CONNECTION_UNAVAIL.0 => win32::ERROR_CONNECTION_UNAVAIL,
    OsError::CANT_RESOLVE_FILENAME.0 => win32::ERROR_CANT_RESOLVE_FILENAME,
    OsError::NOT_A_REPARSE_POINT.0 => win32::ERROR_NOT_A_REPARSE_POINT,
    OsError::REPARSE_TAG_MISMATCH.0 => win32::ERROR_REPARSE_TAG_MISMATCH,
    OsError::REPARSE_POINT_ENCOUNTERED.0 => win32::ERROR_REPARSE_POINT_ENCOUNTERED,
    OsError::FVE_LOCKED_VOLUME.0 => win32::FVE_E_LOCKED_VOLUME.cast_unsigned(),
    OsError::RPC_SERVER_UNAVAILABLE.0 => rpc::RPC_S_SERVER_UNAVAILABLE,
    OsError::RPC_CALL_FAILED.0 => rpc::RPC_S_CALL_FAILED,
    OsError::WBEM_FAILED.0 => wbem::WBEM_E_FAILED.cast_unsigned(),
    OsError::WBEM_NOT_FOUND.0 => wbem::WBEM_E_NOT_FOUND.cast_unsigned(),
    OsError::WBEM_INVALID_NAMESPACE.0 => wbem::WBEM_E_INVALID_NAMESPACE.cast_unsigned(),
    OsError::WBEM_INVALID_CLASS.0 => wbem::WBEM_E_INVALID_CLASS.cast_unsigned(),
    OsError::WBEM_INVALID_QUERY.0 => wbem::WBEM_E_INVALID_QUERY.cast_unsigned(),
    OsError::WBEM_INVALID_METHOD.0 => wbem::WBEM_E_INVALID_METHOD.cast_unsigned(),
    OsError::WBEM_TRANSPORT_FAILURE.0 => wbem::WBEM_E_TRANSPORT_FAILURE.cast_unsigned(),
    OsError::INVALID_HANDLE.0 => win32::ERROR_INVALID_HANDLE,
    OsError::NOT_ENOUGH_MEMORY.0 => win32::ERROR_NOT_ENOUGH_MEMORY,
    OsError::CRC.0 => win32::ERROR_CRC,
    OsError::GEN_FAILURE.0 => win32::ERROR_GEN_FAILURE,
    OsError::LOCK_VIOLATION.0 => win32::ERROR_LOCK_VIOLATION,
    OsError::BAD_NETPATH.0 => win32::ERROR_BAD_NETPATH,
    OsError::BAD_NET_NAME.0 => win32::ERROR_BAD_NET_NAME,
    OsError::INVALID_PASSWORD.0 => win32::ERROR_INVALID_PASSWORD,
    OsError::OPEN_FILES.0 => win32::ERROR_OPEN_FILES,
    OsError::DISK_FULL.0 => win32::ERROR_DISK_FULL,
    OsError::HANDLE_EOF.0 => win32::ERROR_HANDLE_EOF,
    OsError::DEV_NOT_EXIST.0 => win32::ERROR_DEV_NOT_EXIST,
    OsError::NO_SUCH_DEVICE.0 => win32::ERROR_NO_SUCH_DEVICE,
    OsError::SERVICE_DATABASE_LOCKED.0 => win32::ERROR_SERVICE_DATABASE_LOCKED,
}
