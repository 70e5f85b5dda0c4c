# Functions that install.ps1, upgrade.ps1 and uninstall.ps1 share: the service csiproxy, its program and its pipes.
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

$ServiceName = 'csiproxy'
$ServiceKey = "HKLM:\SYSTEM\CurrentControlSet\Services\$ServiceName"

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

# Copies the administrator's tool csi-proxyctl.exe, which is beside the program, to a folder, if its digest is given.
function Copy-Tool([string] $Program, [string] $Folder, [string] $Sha256) {
    if (-not $Sha256) { return }
    $tool = Join-Path (Split-Path -Parent (Resolve-Path -LiteralPath $Program)) 'csi-proxyctl.exe'
    $target = Join-Path $Folder 'csi-proxyctl.exe'
    Assert-Digest $tool $Sha256
    if ($tool -eq $target) { return }
    try { Copy-Item -LiteralPath $tool -Destination $target -Force } catch {
        # Somebody may be using the installed one.
        Write-Warning "csi-proxyctl.exe was not replaced: $_"
    }
}

function Test-Service {
    $null -ne (Get-Service -Name $ServiceName -ErrorAction SilentlyContinue)
}

# Returns the path of the program that the service starts: its command line without the flags.
function Get-ServiceProgram {
    $line = (Get-ItemProperty -LiteralPath $ServiceKey -Name ImagePath).ImagePath
    if ($line -match '^"([^"]+)"') { return $Matches[1] }
    if ($line -match '^(.+?\.exe)(\s|$)') { return $Matches[1] }
    throw "The command line of the service does not begin with a program: $line"
}

# Returns the names of the pipes of csi-proxy that exist on this node, sorted.
function Get-Pipe {
    @([IO.Directory]::GetFiles('\\.\pipe\') | Split-Path -Leaf | Where-Object { $_ -like 'csi-proxy-*' } | Sort-Object)
}

# Starts the service, and waits until it serves these pipes, or any pipe if none are given. Restarts a service that ends
# meanwhile, as Windows does after a failure.
function Start-CsiProxy([string[]] $Pipes = @(), [int] $Seconds = 30) {
    $end = (Get-Date).AddSeconds($Seconds)
    do {
        Start-Service -Name $ServiceName -ErrorAction SilentlyContinue
        Start-Sleep -Milliseconds 500
        $status = (Get-Service -Name $ServiceName).Status
        $found = @(Get-Pipe)
        $missing = @($Pipes | Where-Object { $found -notcontains $_ })
        if ($status -eq 'Running' -and $found.Count -gt 0 -and $missing.Count -eq 0) { return }
    } while ((Get-Date) -lt $end)
    throw "The service $ServiceName is $status and does not serve all of its pipes. Its log or the Application event log has the reason."
}

# Stops the service, and waits until its process has ended, so that its program can be replaced.
function Stop-CsiProxy([int] $Seconds = 120) {
    $process = (Get-CimInstance Win32_Service -Filter "Name = '$ServiceName'").ProcessId
    # A service that has just failed may have stopped already.
    Stop-Service -Name $ServiceName -NoWait -ErrorAction SilentlyContinue
    (Get-Service -Name $ServiceName).WaitForStatus('Stopped', [TimeSpan]::FromSeconds($Seconds))
    if ($process) {
        Wait-Process -Id $process -Timeout $Seconds -ErrorAction SilentlyContinue
    }
}

Export-ModuleMember -Function * -Variable ServiceName, ServiceKey
