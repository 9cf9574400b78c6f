import { readFileSync } from "node:fs";
import { code, table } from "./table.ts";

const root = new URL("../../../", import.meta.url);

/** Why turns were interrupted, and why they completed. */
export function reasonReference(): string {
  return [
    "## Interrupted turns",
    "Code that stops a background turn gives its own reason: a schedule with `overlap` `cancel` gives `schedule_overlap`.",
    tableOf("plugins/src/conversations-runs/turns/turn-failed.ts", "StopReason"),
    "## Completed turns",
    "All but `completed` are in `terminal.reason` and in the receipt's `interruption_reason`.",
    tableOf("core/src/ports/agent-engines.ts", "TurnEnding"),
  ].join("\n\n");
}

/** The members of a union of texts, with their doc comments. */
function tableOf(file: string, type: string): string {
  const source = readFileSync(new URL(file, root), "utf8");
  const [, union = ""] = new RegExp(`export type ${type} =([^;]*);`).exec(source) ?? [];
  const members = [...union.matchAll(/\/\*\* (.*?) \*\/\s*\| "(\w+)"/g)];
  return table(
    ["Reason", "Meaning"],
    members.map(([, comment = "", member = ""]) => [code(member), comment]),
  );
}
