import { type ConfigKey, listConfigKeys } from "@portico/core";
import { platformSchema } from "../../../presets/src/settings/platform.ts";
import { SETTING_EXAMPLES } from "./setting-examples.ts";
import { table } from "./table.ts";

/** All keys of a platform's configuration as Markdown tables, one per area. Derived from the schema: edit only the schema. */
export function settingsReference(): string {
  const areas = new Map<string, ConfigKey[]>();
  for (const key of listConfigKeys(platformSchema)) {
    const [area = ""] = key.path.split(".");
    const isGeneral = !key.path.includes(".") && key.path !== "providers" && key.path !== "mcpServers";
    const heading = isGeneral || area === "instance" ? "The instance" : `\`${area}\``;
    areas.set(heading, [...(areas.get(heading) ?? []), key]);
  }
  return [...areas].map(([heading, keys]) => `## ${heading}\n\n${exampleOf(heading)}\n\n${keyTable(keys)}`).join("\n\n");
}

/** Throws an Error for a group without an example. */
function exampleOf(heading: string): string {
  const example = SETTING_EXAMPLES[heading.replaceAll("`", "")];
  if (example === undefined) throw new Error(`release/references/reference/setting-examples.ts has no example of ${heading}`);
  return `<!-- into portico.config.yaml -->\n\`\`\`yaml\n${example}\n\`\`\``;
}

function keyTable(keys: readonly ConfigKey[]): string {
  const rows = keys.map((key) => [
    `\`${key.path}\``,
    key.description ?? "",
    valueInWords(key),
    defaultInWords(key),
    key.env ? `\`${key.env}\`` : "",
  ]);
  return table(["Key", "What it is", "Value", "Default", "Environment variable"], rows);
}

function valueInWords({ expected, isSecret, env }: ConfigKey): string {
  if (isSecret) return "a secret";
  return env !== undefined && /^(a list|an object)/.test(expected) ? `${expected} (JSON in the variable)` : expected;
}

function defaultInWords(key: ConfigKey): string {
  if (key.default !== undefined) return `\`${JSON.stringify(key.default)}\``;
  return key.isRequired && !key.path.endsWith("*") ? "required" : "";
}
