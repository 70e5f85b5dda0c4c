/* Prints one line `<name> yes` or `<name> no` for each feature of this version of Wine. The argument is an empty folder,
 * in which the probes create what they need; the caller removes it.
 * Each probe checks the effect of its calls, since some functions of Wine report success and do nothing. */
#include <windows.h>
#include <winioctl.h>
#include <winsvc.h>
#include <stdio.h>

static const WCHAR *folder;

static void inside(WCHAR *path, const WCHAR *name)
{
    swprintf(path, MAX_PATH, L"%ls\\%ls", folder, name);
}

static int is_reparse_point(const WCHAR *path)
{
    DWORD attributes = GetFileAttributesW(path);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_REPARSE_POINT);
}

static int process_prng(void)
{
    HMODULE dll = LoadLibraryA("bcryptprimitives.dll");
    return dll && GetProcAddress(dll, "ProcessPrng");
}

static int symbolic_links(void)
{
    WCHAR link[MAX_PATH];
    inside(link, L"link");
    return CreateSymbolicLinkW(link, folder, SYMBOLIC_LINK_FLAG_DIRECTORY) && is_reparse_point(link);
}

static int volume_names(void)
{
    WCHAR name[64];
    return GetVolumeNameForVolumeMountPointW(L"C:\\", name, 64);
}

static int mount_points(void)
{
    WCHAR point[MAX_PATH], name[64];
    inside(point, L"point\\");
    return CreateDirectoryW(point, NULL) && GetVolumeNameForVolumeMountPointW(L"C:\\", name, 64) &&
           SetVolumeMountPointW(point, name) && is_reparse_point(point);
}

static int reparse_points(void)
{
    /* REPARSE_DATA_BUFFER of a junction to C:\windows. */
    static const WCHAR to[] = L"\\??\\C:\\windows";
    BYTE buffer[128] = {0};
    WORD length = sizeof(to) - sizeof(WCHAR);
    WCHAR junction[MAX_PATH];
    DWORD got;
    BOOL set;
    HANDLE directory;

    *(DWORD *)buffer = 0xA0000003; /* IO_REPARSE_TAG_MOUNT_POINT */
    *(WORD *)(buffer + 4) = 8 + length + 4;
    *(WORD *)(buffer + 10) = length;
    *(WORD *)(buffer + 12) = length + 2;
    memcpy(buffer + 16, to, length);
    inside(junction, L"junction");
    if (!CreateDirectoryW(junction, NULL))
        return 0;
    directory = CreateFileW(junction, GENERIC_WRITE, 0, NULL, OPEN_EXISTING,
                            FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    set = DeviceIoControl(directory, 0x900A4 /* FSCTL_SET_REPARSE_POINT */, buffer, 8 + 8 + length + 4, NULL, 0, &got, NULL);
    CloseHandle(directory);
    return set && is_reparse_point(junction);
}

static HANDLE pipe_instance(void)
{
    return CreateNamedPipeA("\\\\.\\pipe\\csi-proxy-probe", PIPE_ACCESS_DUPLEX | FILE_FLAG_FIRST_PIPE_INSTANCE, 0, 2, 0, 0,
                            0, NULL);
}

static int first_pipe_instance(void)
{
    return pipe_instance() != INVALID_HANDLE_VALUE && pipe_instance() == INVALID_HANDLE_VALUE;
}

static int disk_device(void)
{
    GET_LENGTH_INFORMATION length;
    DWORD got;
    HANDLE disk = CreateFileA("\\\\.\\PhysicalDrive0", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING,
                              0, NULL);
    return disk != INVALID_HANDLE_VALUE &&
           DeviceIoControl(disk, IOCTL_DISK_GET_LENGTH_INFO, NULL, 0, &length, sizeof length, &got, NULL);
}

static int firmware_table(void)
{
    return GetSystemFirmwareTable(0x52534D42 /* RSMB */, 0, NULL, 0) > 8;
}

static int services(void)
{
    return OpenSCManagerA(NULL, NULL, SC_MANAGER_CREATE_SERVICE) != NULL;
}

int wmain(int count, WCHAR **arguments)
{
    static const struct {
        const char *name;
        int (*can)(void);
    } probes[] = {
        {"process-prng", process_prng},   {"services", services},
        {"firmware-table", firmware_table}, {"volume-names", volume_names},
        {"symbolic-links", symbolic_links}, {"reparse-points", reparse_points},
        {"mount-points", mount_points},   {"first-pipe-instance", first_pipe_instance},
        {"disk-device", disk_device},
    };
    size_t i;

    if (count != 2)
        return 1;
    folder = arguments[1];
    for (i = 0; i < sizeof probes / sizeof *probes; i++)
        printf("%s %s\n", probes[i].name, probes[i].can() ? "yes" : "no");
    return 0;
}
