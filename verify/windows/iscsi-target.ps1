# Proves that csi-proxy discovers an iSCSI target, is refused with a wrong CHAP secret, logs in with the right one, and
# uses the target's disk as a driver does, from the partition to the mount. The target server runs on this machine.
#
# Needs the service csiproxy and target\go\client.exe. Runs in Windows PowerShell, for which the module of the target
# server is made. Says that it is skipped where the target server cannot be installed.
$ErrorActionPreference = 'Stop'

$client = Resolve-Path "$PSScriptRoot\..\..\target\go\client.exe"
$file = "$env:TEMP\csi-target.vhdx"

try {
    $installed = Install-WindowsFeature FS-iSCSITarget-Server -IncludeManagementTools
} catch {
    Write-Output "::warning::skipped: the iSCSI target: $_"
    exit 0
}
if ("$($installed.RestartNeeded)" -eq 'Yes') {
    Write-Output '::warning::skipped: the iSCSI target: its installation needs a restart of Windows'
    exit 0
}

Start-Service MSiSCSI
Start-Service WinTarget
$address = Get-NetIPAddress -AddressFamily IPv4 -AddressState Preferred |
    Where-Object IPAddress -NotLike '127.*' | Select-Object -First 1
$secret = [guid]::NewGuid().ToString('N').Substring(0, 14)
$chap = New-Object PSCredential 'csi-initiator', (ConvertTo-SecureString $secret -AsPlainText -Force)

New-IscsiVirtualDisk -Path $file -SizeBytes 1GB | Out-Null
$target = New-IscsiServerTarget -TargetName csi-proxy -InitiatorIds 'IQN:*'
try {
    Set-IscsiServerTarget -TargetName csi-proxy -EnableChap $true -Chap $chap
    Add-IscsiVirtualDiskTargetMapping -TargetName csi-proxy -Path $file
    $variables = @(
        '-set', "chapPortal=$($address.IPAddress)"
        '-set', "chapIqn=$($target.TargetIqn)"
        '-set', 'chapUser=csi-initiator'
        '-set', "chapSecret=$secret"
    )
    & $client -target @variables
    if ($LASTEXITCODE -ne 0) { throw "the client failed with $LASTEXITCODE" }
} finally {
    Remove-IscsiServerTarget -TargetName csi-proxy
    Remove-IscsiVirtualDisk -Path $file
    Remove-Item $file
}
