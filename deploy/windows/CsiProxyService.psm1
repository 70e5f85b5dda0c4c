# Functions that install.ps1, upgrade.ps1 and uninstall.ps1 share: the service of csi-proxy, its program and its pipes.
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

# The name of the service. Find-CsiProxy replaces it: distributions use other names.
$ServiceName = 'csiproxy'
# The services that Stop-CsiProxy has stopped because they depend on the service, such as Kubelet on AKS.
$Dependents = @()

function Assert-Administrator {
    $identity = [Security.Principal.WindowsIdentity]::GetCurrent()
    $administrators = [Security.Principal.WindowsBuiltInRole]::Administrator
    if (-not (New-Object Security.Principal.WindowsPrincipal $identity).IsInRole($administrators)) {
        throw 'Run this script in an elevated PowerShell.'
    }
}

# Returns the SHA-256 digest of a file, in lower case.
function Get-Digest([string] $File) {
    (Get-FileHash -Algorithm SHA256 -LiteralPath $File).Hash.ToLowerInvariant()
}

# Fails unless the file has this digest.
function Assert-Digest([string] $File, [string] $Sha256) {
    $found = Get-Digest $File
    if ($found -ne $Sha256.ToLowerInvariant()) {
        throw "$File has the SHA-256 digest $found; expected $Sha256."
    }
}

# Copies a program to a folder in which only administrators may write, and checks the digest of the copy: whoever may write to
# the source can replace the source at any time. Deletes a copy with another digest. Returns the copy, open for reading: nobody
# can change, replace or rename it until the caller disposes of it.
function Copy-Program([string] $Source, [string] $Target, [string] $Sha256) {
    # The owner and the access list of a file that exists would remain.
    if (Test-Path -LiteralPath $Target) { Remove-Item -LiteralPath $Target -Force }
    # Fails if another account has created the file meanwhile.
    [IO.File]::Copy((Resolve-Path -LiteralPath $Source).ProviderPath, $Target, $false)
    $copy = [IO.File]::Open($Target, 'Open', 'Read', 'Read')
    try { Assert-Digest $Target $Sha256 } catch {
        $copy.Dispose()
        Remove-Item -LiteralPath $Target -Force
        throw
    }
    $copy
}

# Copies the administrator's tool csi-proxyctl.exe, which is beside the program, to a folder, if its digest is given.
function Copy-Tool([string] $Program, [string] $Folder, [string] $Sha256) {
    if (-not $Sha256) { return }
    $tool = Join-Path (Split-Path -Parent (Resolve-Path -LiteralPath $Program)) 'csi-proxyctl.exe'
    $target = Join-Path $Folder 'csi-proxyctl.exe'
    if ($tool -eq $target) {
        Assert-Digest $target $Sha256
        return
    }
    $next = Join-Path $Folder 'csi-proxyctl-next.exe'
    (Copy-Program $tool $next $Sha256).Dispose()
    try { Move-Item -LiteralPath $next -Destination $target -Force } catch {
        # Somebody may be using the installed one.
        Write-Warning "csi-proxyctl.exe was not replaced: $_"
        Remove-Item -LiteralPath $next
    }
}

# Returns the service that serves the pipes, whatever its name, as `csi-proxy.exe service find` prints it: its name, its program,
# its wrapper and its dependents. Returns nothing if none is installed. Fails if another program serves the pipes.
function Find-CsiProxy([string] $Program, [string] $Sha256) {
    # Only administrators may write to Windows' folder, so nobody replaces the program before it runs.
    $setup = Join-Path $env:SystemRoot 'csi-proxy-setup.exe'
    $copy = Copy-Program $Program $setup $Sha256
    try { $json = & $setup service find } finally {
        $copy.Dispose()
        Remove-Item -LiteralPath $setup
    }
    if ($LASTEXITCODE -ne 0) { throw 'csi-proxy did not find its service. The reason is above.' }
    $found = $json | ConvertFrom-Json
    if ($found) {
        $script:ServiceName = $found.name
        Write-Output $found
    }
}

# Returns the service csiproxy as Find-CsiProxy does, or nothing if it is not installed.
function Get-DefaultService {
    $key = "HKLM:\SYSTEM\CurrentControlSet\Services\$ServiceName"
    if (-not (Test-Path -LiteralPath $key)) { return }
    if (Test-Path -LiteralPath "$key\Parameters") {
        # The command line of such a service is that of a wrapper, whose file other services use.
        throw "The service $ServiceName may have a wrapper. Use -Program, which finds its program."
    }
    $line = (Get-ItemProperty -LiteralPath $key -Name ImagePath).ImagePath
    if ($line -notmatch '^"([^"]+)"' -and $line -notmatch '^(.+?\.exe)(\s|$)') {
        throw "The command line of the service does not begin with a program: $line"
    }
    [pscustomobject] @{ name = $ServiceName; program = $Matches[1]; wrapper = $null; dependents = @() }
}

# The names of the pipes that csi-proxy serves.
$PipeNames = '^csi-proxy-((disk|filesystem|iscsi|smb|system|volume)-)?v[0-9]+((alpha|beta)[0-9]+)?$'

# A session keeps a type that an earlier import has added.
if (-not ('CsiProxy.Pipe' -as [type])) {
    Add-Type -Namespace CsiProxy -Name Pipe -MemberDefinition @'
[DllImport("kernel32.dll", SetLastError = true)]
public static extern bool GetNamedPipeServerProcessId(IntPtr pipe, out uint process);
'@
}

# Returns the pipes whose names csi-proxy serves, sorted by name, each with the id of the process that serves it. Any account can
# create a pipe of such a name. Omits a pipe that cannot be opened.
function Get-Pipe {
    $names = [IO.Directory]::GetFiles('\\.\pipe\') | Split-Path -Leaf | Where-Object { $_ -cmatch $PipeNames } | Sort-Object
    foreach ($name in $names) {
        # The server may be any program, and must not act as the administrator who asks.
        $pipe = [IO.Pipes.NamedPipeClientStream]::new('.', $name, 'InOut', 'None', 'Anonymous')
        try {
            $pipe.Connect(1000)
            [uint32] $process = 0
            $handle = $pipe.SafePipeHandle.DangerousGetHandle()
            if ([CsiProxy.Pipe]::GetNamedPipeServerProcessId($handle, [ref] $process)) {
                [pscustomobject] @{ Name = $name; Process = $process }
            }
        } catch {
            Write-Verbose "The pipe $name cannot be opened: $_"
        } finally {
            $pipe.Dispose()
        }
    }
}

# Returns the id of the process of the service, or 0 if the service does not run.
function Get-ServiceProcess {
    (Get-CimInstance Win32_Service -Filter "Name = '$ServiceName'").ProcessId
}

# Returns the names of the pipes that the service serves, itself or as a wrapper through a process that it has started, sorted.
function Get-ServicePipe {
    $process = Get-ServiceProcess
    if (-not $process) { return }
    foreach ($pipe in Get-Pipe) {
        $server = Get-CimInstance Win32_Process -Filter "ProcessId = $($pipe.Process)"
        if ($pipe.Process -eq $process -or ($server -and $server.ParentProcessId -eq $process)) { $pipe.Name }
    }
}

# Starts the service, and waits until it serves these pipes, or any pipe if none are given. Restarts a service that ends
# meanwhile, as Windows does after a failure.
function Start-CsiProxy([string[]] $Pipes = @(), [int] $Seconds = 30) {
    $end = (Get-Date).AddSeconds($Seconds)
    do {
        Start-Service -Name $ServiceName -ErrorAction SilentlyContinue
        Start-Sleep -Milliseconds 500
        $status = (Get-Service -Name $ServiceName).Status
        $found = @(Get-ServicePipe)
        $missing = @($Pipes | Where-Object { $found -notcontains $_ })
        if ($status -eq 'Running' -and $found.Count -gt 0 -and $missing.Count -eq 0) {
            $script:Dependents | Start-Service
            return
        }
    } while ((Get-Date) -lt $end)
    throw "The service $ServiceName is $status and does not serve all of its pipes. Its log or the Application event log has the reason."
}

# Stops the service and those that depend on it, and waits until its process has ended, so that its program can be replaced.
function Stop-CsiProxy([int] $Seconds = 120) {
    $process = Get-ServiceProcess
    $running = @((Get-Service -Name $ServiceName).DependentServices | Where-Object { $_.Status -eq 'Running' })
    if ($running.Count -gt 0) {
        # Windows lists the service that starts last first.
        [array]::Reverse($running)
        $script:Dependents = @($running | ForEach-Object { $_.Name })
        Write-Output "Stopping what depends on the service $ServiceName until it runs again: $($script:Dependents -join ', ')"
    }
    # A service that has just failed may have stopped already.
    Stop-Service -Name $ServiceName -Force -NoWait -ErrorAction SilentlyContinue
    (Get-Service -Name $ServiceName).WaitForStatus('Stopped', [TimeSpan]::FromSeconds($Seconds))
    if ($process) {
        Wait-Process -Id $process -Timeout $Seconds -ErrorAction SilentlyContinue
    }
}

Export-ModuleMember -Function *
