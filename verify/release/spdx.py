# Validates lists of packages (SBOM) in the format CycloneDX, and writes each in the format SPDX too.
import json
import re
import sys
from datetime import datetime

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.common.spdx_licensing import spdx_licensing
from spdx_tools.spdx.model import (
    Actor, ActorType, CreationInfo, Document, ExternalPackageRef, ExternalPackageRefCategory, Package, Relationship,
    RelationshipType, SpdxNoAssertion)
from spdx_tools.spdx.writer.write_anything import write_file

def identifier(name):
    return "SPDXRef-" + re.sub("[^A-Za-z0-9.]", "-", name)

def package(component):
    licenses = [spdx_licensing.parse(license["expression"]) for license in component.get("licenses", [])]
    purl = [component["purl"]] if "purl" in component else []
    category = ExternalPackageRefCategory.PACKAGE_MANAGER
    return Package(
        identifier(component["bom-ref"]), component["name"], SpdxNoAssertion(), version=component["version"],
        files_analyzed=False, license_declared=licenses[0] if licenses else SpdxNoAssertion(),
        external_references=[ExternalPackageRef(category, "purl", locator) for locator in purl])

for name in sys.argv[1:]:
    text = open(name).read()
    if found := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"{name}: {found}")
    list = json.loads(text)
    program = list["metadata"]["component"]
    created = datetime.strptime(list["metadata"]["timestamp"], "%Y-%m-%dT%H:%M:%SZ")
    space = f"https://spdx.org/spdxdocs/{program['name']}-{program['hashes'][0]['content']}"
    tool = Actor(ActorType.TOOL, "csi-proxy-xtask")
    creation = CreationInfo("SPDX-2.3", "SPDXRef-DOCUMENT", program["name"], space, [tool], created)
    relations = [Relationship("SPDXRef-DOCUMENT", RelationshipType.DESCRIBES, identifier(program["bom-ref"]))]
    for needs in list["dependencies"]:
        for needed in needs["dependsOn"]:
            kind = RelationshipType.DEPENDS_ON
            relations.append(Relationship(identifier(needs["ref"]), kind, identifier(needed)))
    packages = [package(component) for component in [program, *list["components"]]]
    # The document is validated before it is written.
    write_file(Document(creation, packages, relationships=relations), name.replace(".cdx.json", ".spdx.json"))
