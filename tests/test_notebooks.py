"""The notebooks: they run, quickly and without warnings, and show pictures."""

import time
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason='needs pip install -e ".[notebooks]"')
nbclient = pytest.importorskip("nbclient", reason='needs pip install -e ".[notebooks]"')
pytest.importorskip("ipykernel", reason='needs pip install -e ".[notebooks]"')
pytest.importorskip("matplotlib", reason='needs pip install -e ".[notebooks]"')

FOLDER = Path(__file__).parents[1] / "notebooks"
SECONDS = 120  # for a whole notebook
notebooks = pytest.mark.parametrize(
    "path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem
)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks():
    assert len(list(FOLDER.glob("*.ipynb"))) >= 5


@notebooks
def test_is_kept_without_outputs(path):
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    for number, cell in enumerate(notebook.cells, 1):
        assert cell.id == f"cell-{number:02}"
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
    assert notebook.metadata.kernelspec.name == "python3"


@pytest.mark.slow
@notebooks
def test_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = set(FOLDER.iterdir())
    notebook = nbformat.read(path, 4)
    begin = time.perf_counter()
    client = nbclient.NotebookClient(
        notebook, timeout=SECONDS, resources={"metadata": {"path": str(FOLDER)}}
    )
    client.execute()
    assert time.perf_counter() - begin < SECONDS
    assert set(FOLDER.iterdir()) == before

    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    texts = [o.text for o in outputs if o.output_type == "stream" and o.name == "stderr"]
    assert texts == []  # warnings and the like
    pictures = [o for o in outputs if "image/png" in o.get("data", {})]
    assert len(pictures) >= 2
