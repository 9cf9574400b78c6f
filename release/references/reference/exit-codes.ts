import { readFileSync } from "node:fs";
import { EXIT } from "../../../presets/cli/src/exit-codes.ts";
import { table } from "./table.ts";

/** The exit codes of the command line, each with its doc comment. */
export function exitCodeReference(): string {
  const source = readFileSync(new URL("../../../presets/cli/src/exit-codes.ts", import.meta.url), "utf8");
  const comments = new Map(
    [...source.matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\n {2}(\w+): \d+,/g)].map(([, comment = "", name = ""]) => [
      name,
      comment.replaceAll(/^\s*\* ?/gm, "").trim(),
    ]),
  );
  const rows = Object.entries(EXIT).map(([name, exitCode]) => [String(exitCode), comments.get(name) ?? ""]);
  return table(["Code", "Meaning"], rows);
}
