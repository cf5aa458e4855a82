"""Writes the Parquet files of this folder with Apache Arrow, for parquet_test.cpp and the tests of the program.

Needs: pip install pyarrow==26.0.1

types.parquet   a column of each type, in row groups of three rows, the last with one
packed.parquet  the same 600 texts, numbers and truths in each compression and encoding, some of them null
texts/          two files of texts in row groups of two rows
flights.parquet the table of tests/cli/task_data.py, its delays null where that says NA
topics.parquet  the labeled texts of the same
../../fuzz/seeds/parquet/  small ones of one compression each, whose columns fuzz_parquet.cpp names
"""
import csv
import datetime
import decimal
import os
import pathlib
import sys
import tempfile

import pyarrow
import pyarrow.parquet

FOLDER = pathlib.Path(__file__).resolve().parent
os.environ.setdefault("TESSERA_PROGRAM", "")  # which the tests of the program want, and this does not call
sys.path.insert(0, str(FOLDER.parent.parent / "cli"))
from task_data import write_examples, write_table  # noqa: E402

ROWS = 600


def write(name, columns, **options):
    path = FOLDER / f"{name}.parquet"
    path.parent.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)


def write_types():
    def integers(bits, signed):
        most = 2 ** (bits - signed) - 1
        least = -most - 1 if signed else 0
        return pyarrow.array([least, None, most, 0, 1, 7, 65], f"{'' if signed else 'u'}int{bits}")

    columns = {f"{'' if signed else 'u'}int{bits}": integers(bits, signed) for signed in (True, False) for bits in (8, 16, 32, 64)}
    reals = [0.1, None, 2, -1e-7, float("inf"), float("nan"), 3.25]
    columns |= {f"float{bits}": pyarrow.array([None if real is None else numpy_half(real) if bits == 16 else real for real in reals],
                                              f"float{bits}") for bits in (16, 32, 64)}
    texts = ["", None, "a, \"b\"\n", "Straße", "x", "x", "\u6c34"]
    days = [datetime.date(1969, 12, 31), None, *(datetime.date(2024, 2, day) for day in (29, 1, 2, 3, 4))]
    columns |= {
        "truth": pyarrow.array([True, None, False, True, True, False, False]),
        "text": pyarrow.array(texts, "string"),
        "large_text": pyarrow.array(texts, "large_string"),
        "category": pyarrow.array(texts).dictionary_encode(),
        "decimal": pyarrow.array([decimal.Decimal("-0.05"), None, *map(decimal.Decimal, ("1234567.89", "0", "1", "2", "3"))],
                                 pyarrow.decimal128(9, 2)),
        "day": pyarrow.array(days, "date32"),
        "moment": pyarrow.array([None if day is None else datetime.datetime(day.year, day.month, day.day, 13, 5, 9, 250000)
                                 for day in days], pyarrow.timestamp("us")),
        "nothing": pyarrow.nulls(7),
        "bytes": pyarrow.array([b"\0"] * 7),
        "list": pyarrow.array([[1, 2]] * 7),
        "parts": pyarrow.array([{"text": "a"}] * 7),
        "map": pyarrow.array([[("a", 1)]] * 7, pyarrow.map_("string", "int64")),
        "after": pyarrow.array(range(7), "int32"),
    }
    write("types", columns, row_group_size=3, compression="snappy")


def numpy_half(real):
    import numpy  # which pyarrow wants for this type alone

    return numpy.float16(real)


def write_packed():
    texts = pyarrow.array([None if i % 7 == 3 else f"text {i % 50}" for i in range(ROWS)])
    numbers = pyarrow.array([None if i % 7 == 3 else (i * i) % 1000 - 500 for i in range(ROWS)], "int32")
    truths = pyarrow.array([None if i % 7 == 3 else i % 3 == 0 for i in range(ROWS)])
    columns, codecs, encodings, dictionaries = {}, {}, {}, []

    def add(name, values, codec="NONE", encoding=None):
        columns[name], codecs[name] = values, codec
        if encoding is None:
            dictionaries.append(name)
        else:
            encodings[name] = encoding

    for codec in ("NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4", "BROTLI"):
        add(f"text {codec}", texts, codec)
    for encoding in ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"):
        add(f"text {encoding}", texts, encoding=encoding)
    add("number dictionary", numbers)
    for encoding in ("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"):
        add(f"number {encoding}", numbers, encoding=encoding)
    for encoding in ("PLAIN", "RLE"):
        add(f"truth {encoding}", truths, encoding=encoding)
    write("packed", columns, row_group_size=256, data_page_size=512, compression=codecs, use_dictionary=dictionaries,
          column_encoding=encodings, data_page_version="2.0", write_page_checksum=True)


def write_texts():
    for name, texts in (("b", ["The third text.\n\nOf two paragraphs.", None]), ("a", ["One.", "  ", "Another, longer text."])):
        write(f"texts/{name}", {"id": range(len(texts)), "body": pyarrow.array(texts, "string")}, row_group_size=2, compression="zstd")


def rows_of(path, delimiter):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def write_task_data():
    with tempfile.TemporaryDirectory() as folder:
        write_table(pathlib.Path(folder) / "flights.csv")
        write_examples(pathlib.Path(folder))
        flights = rows_of(pathlib.Path(folder) / "flights.csv", ",")
        topics = rows_of(pathlib.Path(folder) / "topics.tsv", "\t")
    columns = {}
    for name in flights[0]:
        cells = [row[name] for row in flights]
        is_text = name in ("carrier", "origin", "dest", "tailnum")
        columns[name] = pyarrow.array(cells if is_text else [None if cell == "NA" else int(cell) for cell in cells])
    write("flights", columns, row_group_size=1000, compression="zstd")
    write("topics", {name: [row[name] for row in topics] for name in topics[0]}, row_group_size=128)


def write_seeds():
    columns = {"a": pyarrow.array([1, None, 3] * 5, "int32"),
               "b": pyarrow.array(["x", "", None] * 5),
               "c": pyarrow.array(["x", "y", None] * 5).dictionary_encode(),
               "d": pyarrow.array([0.5, None, float("nan")] * 5),
               "e": pyarrow.array([None, decimal.Decimal("1.25"), decimal.Decimal(-3)] * 5, pyarrow.decimal128(20, 2)),
               "f": pyarrow.array([datetime.datetime(2024, 2, 29), None, None] * 5, pyarrow.timestamp("us"))}
    plain = {"a": "DELTA_BINARY_PACKED", "b": "DELTA_BYTE_ARRAY", "d": "BYTE_STREAM_SPLIT"}
    for codec in ("none", "snappy", "zstd", "gzip"):
        write(f"../../fuzz/seeds/parquet/{codec}", columns, row_group_size=8, compression=codec, write_statistics=codec == "none")
    write("../../fuzz/seeds/parquet/encodings", columns, compression="none", data_page_version="2.0", use_dictionary=False,
          column_encoding=plain)


if __name__ == "__main__":
    write_types()
    write_packed()
    write_texts()
    write_task_data()
    write_seeds()
