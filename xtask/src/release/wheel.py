"""Makes a wheel that installs one program: wheel.py WHEEL PROGRAM LICENSE...

The same files give the same wheel.
"""

import base64
import hashlib
import pathlib
import sys
import zipfile

wheel, program, *licenses = map(pathlib.Path, sys.argv[1:])
name, version, tags = wheel.stem.split("-", 2)
info = f"{name}-{version}.dist-info"
python, abi, platforms = tags.split("-")
files = {f"{name}-{version}.data/scripts/{program.name}": program.read_bytes()}
files |= {f"{info}/licenses/{file.name}": file.read_bytes() for file in licenses}
files[f"{info}/METADATA"] = f"""Metadata-Version: 2.1
Name: {name.replace("_", "-")}
Version: {version}
Summary: A simulated Windows node for the tests of CSI drivers
License: Apache-2.0
""".encode()
tag_lines = "".join(f"Tag: {python}-{abi}-{platform}\n" for platform in platforms.split("."))
files[f"{info}/WHEEL"] = f"""Wheel-Version: 1.0
Generator: csi-proxy
Root-Is-Purelib: false
{tag_lines}""".encode()
record = ""
for path, data in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    record += f"{path},sha256={digest},{len(data)}\n"
files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
with zipfile.ZipFile(wheel, "w") as archive:
    for path, data in files.items():
        entry = zipfile.ZipInfo(path)  # of 1980-01-01
        entry.external_attr = (0o100755 if path.endswith(program.name) else 0o100644) << 16
        archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
