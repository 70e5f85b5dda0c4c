# Validates lists of packages (SBOM) with the schemas of their formats.
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
for name in sys.argv[1:]:
    if name.endswith(".cdx.json"):
        found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(name).read())
    else:
        found = validate_full_spdx_document(parse_file(name))
    if found:
        sys.exit(f"{name}: {found}")
