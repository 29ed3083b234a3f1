"""Create PDF and DOCX files, including hostile ones."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

from docx import Document
from pypdf import PdfReader, PdfWriter


def pdf(pages: Sequence[str]) -> bytes:
    """Create a PDF with one line of text per page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"]
    objects += ["<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for number, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET" if text else ""
        font = "/Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {font} /Contents {5 + 2 * number} 0 R >>")
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    return pdf_of(each.encode() for each in objects)


def pdf_of(objects: Iterable[bytes]) -> bytes:
    data, places = b"%PDF-1.4\n", list[int]()
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
    return data + head + table + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(places) + 1, len(data))


def huge_stream_pdf() -> bytes:
    """Return a 200 KB PDF whose only page decompresses to 200 MB."""
    packed = zlib.compress(b" " * 200_000_000)
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>"
    stream = b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed)
    return pdf_of([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page, stream])


def nested_pdf() -> bytes:
    """Return a PDF page with 100,000 nested arrays."""
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox " + b"[" * 100_000 + b"]" * 100_000 + b" >>"
    return pdf_of([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page])


def circular_pdf() -> bytes:
    return pdf_of([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 1 >>"])


def encrypted_pdf() -> bytes:
    writer = PdfWriter(clone_from=PdfReader(BytesIO(pdf(["secret"]))))
    writer.encrypt("password", algorithm="RC4-128")
    file = BytesIO()
    writer.write(file)
    return file.getvalue()


def docx(lines: Sequence[str], table: Sequence[Sequence[str]] = ()) -> bytes:
    document, file = Document(), BytesIO()
    for line in lines:
        document.add_paragraph(line)
    for row in table:
        cells = document.add_table(1, len(row)).rows[0].cells
        for cell, text in zip(cells, row, strict=True):
            cell.text = text
    document.save(file)
    return file.getvalue()


def changed_docx(parts: Mapping[str, bytes]) -> bytes:
    """Return a DOCX file with additional or replaced parts."""
    file = BytesIO()
    with ZipFile(BytesIO(docx(["hello"]))) as before, ZipFile(file, "w", ZIP_DEFLATED) as after:
        for name in before.namelist():
            if name not in parts:
                after.writestr(name, before.read(name))
        for name, data in parts.items():
            after.writestr(name, data)
    return file.getvalue()


def _xml(head: str, body: str) -> bytes:
    words = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    return f'<?xml version="1.0"?>{head}<w:document {words}><w:body><w:p><w:r><w:t>{body}</w:t></w:r></w:p></w:body></w:document>'.encode()


def billion_laughs() -> bytes:
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    return changed_docx({"word/document.xml": _xml(f'<!DOCTYPE d [<!ENTITY a0 "ha">{entities}]>', "&a9;")})


def external_entity(path: str) -> bytes:
    return changed_docx({"word/document.xml": _xml(f'<!DOCTYPE d [<!ENTITY x SYSTEM "file://{path}">]>', "&x;")})


def zip_bomb() -> bytes:
    return changed_docx({"word/media/image1.png": b"\0" * (65 << 20)})


def with_macros() -> bytes:
    return changed_docx({"word/vbaProject.bin": b"Auto_Open"})
