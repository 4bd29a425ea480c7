"""Check the dashboards in `docs/monitoring` against Grafana's own types, panel by panel.

    uv run just dashboards

The types and the compiler come by npm into a folder of their own, so the product does not depend on them.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "monitoring"
PACKAGES = ("@grafana/schema@13.2.3", "typescript@5.9.3")
COMPILE = ("--noEmit", "--strict", "--skipLibCheck", "--moduleResolution", "bundler", "--module", "esnext")
# Enums are texts in JSON. Options and fields of a panel have the types of its plugin; Grafana fills in what they lack.
TYPES = """
import type * as raw from "./node_modules/@grafana/schema/dist/types/raw/dashboard/x/types.gen";
import type * as timeseries from "./node_modules/@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen";
import type * as stat from "./node_modules/@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/types.gen";
type Json<T> = unknown extends T ? unknown : T extends string ? `${T}` : T extends number ? number
  : T extends boolean | null | undefined ? T : T extends (infer U)[] ? Json<U>[]
  : T extends object ? {[K in keyof T]: Json<T[K]>} : T;
type Query = {refId: string; datasource: raw.DataSourceRef; expr: string; legendFormat: string};
type Plugin<Options, Custom> = Json<Omit<raw.Panel, "options" | "fieldConfig" | "targets">> & {
  options: Json<Partial<Options>>; targets: Query[];
  fieldConfig: Omit<Json<raw.FieldConfigSource>, "defaults">
    & {defaults: Omit<Json<raw.FieldConfig>, "custom"> & {custom?: Json<Partial<Custom>>}}};
type Board = Omit<Json<raw.Dashboard>, "panels">;
"""
PANELS = {
    "row": "Json<raw.RowPanel>",
    "stat": "Plugin<stat.Options, {}>",
    "timeseries": "Plugin<timeseries.Options, timeseries.FieldConfig>",
}


def main() -> None:
    """Compile all dashboards as values of Grafana's types, and fail if one is none."""
    if shutil.which("npm") is None:
        sys.exit("npm cannot be run: install Node.js.")
    boards = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.json"))]
    with tempfile.TemporaryDirectory(prefix="adloom-dashboards-") as folder:
        (Path(folder) / "boards.ts").write_text(write_module(boards), encoding="utf-8")
        _run(folder, "npm", "install", "--silent", "--no-audit", "--no-fund", *PACKAGES)
        said = _run(folder, "npx", "tsc", *COMPILE, "boards.ts")
    print(said or f"{len(boards)} dashboards: nothing to object to")
    sys.exit(bool(said))


def write_module(boards: list[dict[str, Any]]) -> str:
    """Write a module in which every panel and every dashboard is a value of its type."""
    lines = [TYPES]
    for number, board in enumerate(boards):
        lines += [
            f"export const panel_{number}_{panel['id']}: {PANELS[panel['type']]} = {json.dumps(panel)};"
            for panel in board["panels"]
        ]
        rest = {name: value for name, value in board.items() if name != "panels"}
        lines.append(f"export const board_{number}: Board = {json.dumps(rest)};")
    return "\n".join(lines)


def _run(folder: str, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    return done.stdout if done.returncode else ""


if __name__ == "__main__":
    main()
