// Run this after every change of a settings schema: `npm run docs:config`.
import { type ConfigKey, listConfigKeys } from "@portico/core";
import { platformSchema } from "../../presets/src/settings/platform.ts";
import { rewritePage, withMarkedPart } from "./marked-part.ts";

const MARKS = [
  "<!-- Keys: generated from the schema by `npm run docs:config`; edit the schema. -->",
  "<!-- End of the keys. -->",
] as const;

/** Updates the tables of keys in the page. Throws if a mark is missing. */
export function withReference(page: string): string {
  return withMarkedPart(page, MARKS, settingsReference());
}

/** All keys of a platform's configuration as Markdown tables, one per area. Derived from the schema: edit only the schema. */
function settingsReference(): string {
  const areas = new Map<string, ConfigKey[]>();
  for (const key of listConfigKeys(platformSchema)) {
    const [area = ""] = key.path.split(".");
    const isGeneral = !key.path.includes(".") && key.path !== "providers" && key.path !== "mcpServers";
    const heading = isGeneral || area === "instance" ? "The instance" : `\`${area}\``;
    areas.set(heading, [...(areas.get(heading) ?? []), key]);
  }
  return [...areas].map(([heading, keys]) => `### ${heading}\n\n${keyTable(keys)}`).join("\n\n");
}

function keyTable(keys: readonly ConfigKey[]): string {
  const rows = keys.map((key) => [
    `\`${key.path}\``,
    cell(key.description ?? ""),
    cell(valueInWords(key)),
    defaultInWords(key),
    key.env ? `\`${key.env}\`` : "",
  ]);
  return [["Key", "What it is", "Value", "Default", "Environment variable"], ["---", "---", "---", "---", "---"], ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n");
}

function valueInWords({ expected, isSecret, env }: ConfigKey): string {
  if (isSecret) return "a secret";
  return env !== undefined && /^(a list|an object)/.test(expected) ? `${expected} (JSON in the variable)` : expected;
}

function defaultInWords(key: ConfigKey): string {
  if (key.default !== undefined) return `\`${JSON.stringify(key.default)}\``;
  return key.isRequired && !key.path.endsWith("*") ? "required" : "";
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

if (import.meta.main) await rewritePage("configuration.md", withReference);
