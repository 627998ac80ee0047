"""What `annotation.readers` gives by name, each loaded on first use."""

import subprocess
import sys
from pkgutil import iter_modules

from annotation import readers


def test_every_name_is_there_and_none_is_a_module_of_the_package() -> None:
    assert set(readers.__all__) == set(readers._PLACES)
    assert not set(readers.__all__) & {module.name for module in iter_modules(readers.__path__)}
    for name in readers.__all__:
        assert getattr(readers, name) is not None


def test_opening_no_workbook_loads_no_library_for_workbooks() -> None:
    program = "import sys; import annotation.readers.file_types.xlsx; print({'openpyxl', 'numpy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout == b"set()\n"


def test_a_name_loads_its_module_and_no_reader_of_workbooks() -> None:
    program = (
        "import sys; from annotation.readers import excerpt; print('annotation.readers.file_types.xlsx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout == b"False\n"
