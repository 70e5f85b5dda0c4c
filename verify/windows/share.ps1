# Proves that csi-proxy maps a share for all accounts of the node with the credentials of the request: a wrong password
# is refused and leaves nothing behind, files on the share belong to the user of the mapping, and the credentials of a
# second user are refused, both for the same share and for another share of the same server.
#
# Needs the service csiproxy and target\go\client.exe. Creates two accounts, a folder and two shares, and removes them.
$ErrorActionPreference = 'Stop'
$PSNativeCommandUseErrorActionPreference = $true

$client = Resolve-Path "$PSScriptRoot\..\..\target\go\client.exe"
$folder = "$env:TEMP\csi-share"
$link = 'C:\var\lib\kubelet\plugins\go-client\smb'

# Creates an account and returns its password. `net user` asks a question if a password is longer than 14 characters.
function New-Account([string] $name) {
    $password = 'Aa1-' + [guid]::NewGuid().ToString('N').Substring(0, 10)
    net user $name $password /add | Out-Null
    $password
}

New-Item -ItemType Directory -Force $folder | Out-Null
$alice = New-Account csi-alice
$bob = New-Account csi-bob
try {
    icacls $folder /grant 'csi-alice:(OI)(CI)M' 'csi-bob:(OI)(CI)M' | Out-Null
    foreach ($name in 'csi-share', 'csi-second') {
        New-SmbShare -Name $name -Path $folder -FullAccess csi-alice, csi-bob -EncryptData $true | Out-Null
    }
    $variables = @(
        '-set', 'share=\\localhost\csi-share'
        '-set', 'secondShare=\\localhost\csi-second'
        '-set', "user=$env:COMPUTERNAME\csi-alice"
        '-set', "password=$alice"
        '-set', "otherUser=$env:COMPUTERNAME\csi-bob"
        '-set', "otherPassword=$bob"
    )
    & $client -share @variables

    # The account of this script has no access to the share, so it writes through the mapping or not at all.
    Set-Content "$link\proof.txt" 'written through the link'
    $owner = (Get-Acl "$folder\proof.txt").Owner
    if ($owner -ne "$env:COMPUTERNAME\csi-alice") { throw "a file on the share belongs to $owner" }

    & $client -no-share @variables
    if (Test-Path $link) { throw "$link is left behind" }
} finally {
    Get-SmbShare | Where-Object Name -In 'csi-share', 'csi-second' | Remove-SmbShare -Force
    net user csi-alice /delete | Out-Null
    net user csi-bob /delete | Out-Null
    Remove-Item -Recurse -Force $folder
}
