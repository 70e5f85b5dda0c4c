# Proves who may connect to the pipes: an administrator may; an account without administrator rights may not, until
# -pipe-sid names it.
#
# Needs dist\csi-proxy.exe, and that no daemon runs. Creates an account and removes it.
$ErrorActionPreference = 'Stop'
$PSNativeCommandUseErrorActionPreference = $true

$daemon = Resolve-Path "$PSScriptRoot\..\..\dist\csi-proxy.exe"
$password = 'Aa1-' + [guid]::NewGuid().ToString('N').Substring(0, 10)
Add-Type -Namespace CsiProxy -Name Logon -MemberDefinition @'
[DllImport("advapi32.dll", CharSet = CharSet.Unicode, SetLastError = true)]
public static extern bool LogonUser(string user, string domain, string password, int type, int provider, out IntPtr token);
'@

# Returns 'connected' or the name of the exception.
function Test-Pipe {
    $pipe = [System.IO.Pipes.NamedPipeClientStream]::new('.', 'csi-proxy-disk-v1', 'InOut')
    try {
        $pipe.Connect(10000)
        'connected'
    } catch {
        $_.Exception.GetBaseException().GetType().Name
    } finally {
        $pipe.Dispose()
    }
}

# Starts a daemon, tests the pipe as the account of this script and as the plain account, and compares the results.
function Assert-Access([string[]] $flags, [string] $expected) {
    $process = Start-Process -FilePath $daemon -ArgumentList (@('-drain=1') + $flags) -NoNewWindow -PassThru
    try {
        $administrator = Test-Pipe
        $script:plain = 'not tried'
        [System.Security.Principal.WindowsIdentity]::RunImpersonated($token, [Action] { $script:plain = Test-Pipe })
        if ($administrator -ne 'connected') { throw "an administrator: $administrator" }
        if ($script:plain -ne $expected) { throw "a plain account with [$flags]: $($script:plain), not $expected" }
    } finally {
        Stop-Process -Id $process.Id -Force
        $process.WaitForExit()
    }
}

net user csi-plain $password /add | Out-Null
try {
    $handle = [IntPtr]::Zero
    # An interactive logon (2) with the default provider (0).
    if (-not [CsiProxy.Logon]::LogonUser('csi-plain', '.', $password, 2, 0, [ref] $handle)) { throw 'LogonUser failed' }
    $token = [Microsoft.Win32.SafeHandles.SafeAccessTokenHandle]::new($handle)
    $sid = [System.Security.Principal.NTAccount]::new('csi-plain').Translate([System.Security.Principal.SecurityIdentifier])
    Assert-Access @() 'UnauthorizedAccessException'
    Assert-Access @("-pipe-sid=$sid") 'connected'
} finally {
    net user csi-plain /delete | Out-Null
}
