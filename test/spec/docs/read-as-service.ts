import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { readAgentText } from "../../../adapters/src/agents/agent-file.ts";
import { type Contract, flattenPreset, loadConfig } from "@portico/core";
import { loadDefinition } from "@portico/plugins/workflow-service/definitions";
import { readConfigFile } from "../../../presets/cli/src/config-file.ts";
import { loadPreset } from "../../../presets/cli/src/preset-table.ts";
import { readNodeRules } from "../../../presets/cli/src/workflows/node-rules.ts";
import { type PlatformSettings, platformSchema } from "../../../presets/src/settings/platform.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

/** Files that a service reads, by their path in its folder, and how it does. */
const doors: readonly { readonly files: RegExp; readonly read: (path: string, text: string) => Promise<string | undefined> }[] = [
  { files: /(?:^|\/)portico\.config\.(?:ts|mjs|json|ya?ml)$/, read: readConfiguration },
  { files: /^workflows\/[\w-]+\.(?:ya?ml|json)$/, read: readDefinition },
  { files: /^agents\/[\w-]+\/agent\.json$/, read: readAgent },
];

/** What a service says against a file of its folder; undefined where nothing is wrong. */
/** The variables that the pages name as places of secrets. */
const SECRETS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    [
      ...["MAIN_KEY", "AGENT_SERVICE_TOKEN", "WORKFLOW_SERVICE_TOKEN", "PORTICO_POSTGRES_URL", "PORTICO_REDIS_URL"],
      ...["PORTICO_S3_ACCESS_KEY_ID", "PORTICO_S3_SECRET_ACCESS_KEY"],
    ].map((name) => [name, "a-secret"]),
  ),
  PORTICO_INSTANCE_KEY: Buffer.alloc(32).toString("base64url"),
  NOTIFICATIONS_SECRET: `whsec_${Buffer.alloc(32).toString("base64")}`,
  COLLECTOR_HEADERS: "authorization=a-secret",
};

export async function readAsService(path: string, text: string): Promise<string | undefined> {
  const door = doors.find(({ files }) => files.test(path));
  if (!door) return `no service reads a file ${path}`;
  return door.read(path, text).catch((error: Error) => error.message);
}

/** What a client says against an answer of a route such as `GET /api/listeners`; undefined where nothing is wrong. */
export async function readAsClient(route: string, text: string): Promise<string | undefined> {
  const { plugins } = flattenPreset((await loadPreset("local")).build({ settings: settingsOf({}), providers: [] }));
  const routes = plugins.flatMap(({ spec }) => Object.values(spec.contract as Contract));
  const success = routes.find(({ method, path }) => `${method} ${path}` === route)?.success;
  if (success?.kind !== "json") return `no route ${route} answers JSON`;
  const answer: unknown = JSON.parse(text);
  const read = await success.schema["~standard"].validate(answer);
  if (read.issues) return read.issues.map(({ message }) => message).join("; ");
  return isDeepStrictEqual(read.value, answer) ? undefined : `${route} does not answer all of that`;
}

async function readConfiguration(path: string, text: string): Promise<undefined> {
  const folder = temporaryFolder();
  const env = {
    ...Object.fromEntries(Object.entries(SECRETS).filter(([name]) => text.includes(name))),
    CREDENTIALS_DIRECTORY: folder.path,
  };
  for (const [, name] of text.matchAll(/\$CREDENTIALS_DIRECTORY\/([\w-]+)/g))
    writeFileSync(join(folder.path, name!), name === "instance-key" ? SECRETS["PORTICO_INSTANCE_KEY"]! : "a-secret");
  try {
    writeFileSync(join(folder.path, basename(path)), text);
    loadConfig(platformSchema, { file: await readConfigFile(undefined, folder.path), env });
  } finally {
    folder.remove();
  }
}

/** What definitions of the pages speak of. */
const INSTANCE = {
  providers: ["main", "demo"].map((id) => ({
    id,
    protocol: "messages",
    baseUrl: "https://api.example/v1",
    models: ["m-small", "demo"],
  })),
  workflow: { secrets: { TRACKER: "a-secret" } },
};

async function readDefinition(path: string, text: string): Promise<string | undefined> {
  const rules = await readNodeRules({ settings: settingsOf(INSTANCE), preset: "local" });
  const { problems = [] } = loadDefinition({ name: basename(path), text }, rules);
  return problems.map(({ line, column, message }) => `${line}:${column}: ${message}`).join("; ") || undefined;
}

/** People keep more in the file than a service reads; a page shows what is read. */
async function readAgent(_path: string, text: string): Promise<string | undefined> {
  const { definition, metadataError } = readAgentText("helper", text);
  if (metadataError) return metadataError;
  const unread = Object.keys(JSON.parse(text) as object).filter((key) => !(key in definition));
  return unread.length > 0 ? `nothing reads ${unread.join(", ")}` : undefined;
}

function settingsOf(content: object): PlatformSettings {
  return loadConfig(platformSchema, { file: { path: "portico.config.json", content }, env: {} }).value;
}
