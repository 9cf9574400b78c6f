import { readFileSync } from "node:fs";
import * as webhooks from "../../../plugins/src/agent-webhook/limits.ts";
import * as files from "../../../plugins/src/attachments-media/limits.ts";
import * as turns from "../../../plugins/src/conversations-runs/limits.ts";
import * as proxy from "../../../plugins/src/model-proxy/limits.ts";
import * as workflows from "../../../plugins/src/workflow-service/contracts/limits.ts";
import * as definitions from "../../../plugins/src/workflow-service/definition/definition-limits.ts";
import * as expressions from "../../../plugins/src/workflow-service/expressions/expression-limits.ts";
import * as runFiles from "../../../plugins/src/workflow-service/files/file-limits.ts";
import { bytes, code, table } from "./table.ts";

type Values = Readonly<Record<string, unknown>>;

/** The limits of each area, by the files that declare them. */
const FILES: Readonly<Record<string, readonly (readonly [file: string, values: Values])[]>> = {
  "agent-webhook": [["agent-webhook/limits.ts", webhooks]],
  "attachments-media": [["attachments-media/limits.ts", files]],
  "conversations-runs": [["conversations-runs/limits.ts", turns]],
  "model-proxy": [["model-proxy/limits.ts", proxy]],
  "workflow-service": [
    ["workflow-service/contracts/limits.ts", workflows],
    ["workflow-service/definition/definition-limits.ts", definitions],
    ["workflow-service/expressions/expression-limits.ts", expressions],
    ["workflow-service/files/file-limits.ts", runFiles],
  ],
};

/** The limits of an area, each with the doc comment of its constant. Undefined for an area that declares none in a file of its own. */
export function limitTables(area: string): string | undefined {
  const files = FILES[area];
  return (
    files &&
    table(
      ["Limit", "Value"],
      files.flatMap(([file, values]) => rowsOf(file, values)),
    )
  );
}

/** One row per doc comment: constants that share a comment are its values. */
function rowsOf(file: string, values: Values): string[][] {
  const text = readFileSync(new URL(`../../../plugins/src/${file}`, import.meta.url), "utf8");
  const rows: string[][] = [];
  let isOpen = false;
  for (const [, comment, name, blank] of text.matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/|^export const ([A-Z][A-Z_]+)\b|^(\s*)$/gm)) {
    if (comment !== undefined) rows.push([sentenceOf(comment), ""]);
    if (blank !== undefined) isOpen = false;
    if (comment !== undefined) isOpen = true;
    if (name === undefined) continue;
    const row = rows.at(-1);
    if (!isOpen || !row) {
      rows.push([code(name), valueOf(name, values[name])]);
      continue;
    }
    row[1] = [row[1], valueOf(name, values[name])].filter((each) => each !== "").join("; ");
  }
  return rows.filter(([, value]) => value !== "");
}

function sentenceOf(comment: string): string {
  return comment
    .replaceAll(/^\s*\* ?/gm, "")
    .replaceAll(/ \((?:specification|open points)[^)]*\)/g, "")
    .replaceAll(/,? in milliseconds(?=[.:])/g, "")
    .trim();
}

function valueOf(name: string, value: unknown): string {
  if (typeof value === "number") return numberOf(name, value);
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value === "object" && value !== null)
    return Object.entries(value)
      .map(
        ([key, each]) =>
          `${code(key)} ${typeof each === "number" ? numberOf(name.endsWith("_MS") || key.endsWith("Ms") ? "_MS" : name, each) : String(each)}`,
      )
      .join(", ");
  return String(value);
}

function numberOf(name: string, value: number): string {
  if (name.endsWith("_MS")) return time(value);
  if (name.endsWith("_SECONDS")) return time(value * 1000);
  if (/(?:^|_)BYTES/.test(name)) return bytes(value);
  return value.toLocaleString("en");
}

function time(milliseconds: number): string {
  const units = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1000],
  ] as const;
  const [unit, size] = units.find(([, each]) => milliseconds >= each && milliseconds % each === 0) ?? ["ms", 1];
  return `${(milliseconds / size).toLocaleString("en")} ${unit}`;
}
