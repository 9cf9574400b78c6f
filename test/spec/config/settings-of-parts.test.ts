import { loopSettings } from "@portico/adapters/agent-engines/loop-options";
import { auditSettings } from "@portico/adapters/audit/records";
import { telemetrySettings } from "@portico/adapters/telemetry/otlp-options";
import { pricesSettings, usageSettings } from "@portico/adapters/usage/usage-options";
import { listConfigKeys } from "@portico/core";
import { local, localSchema, readPlatformOptions } from "@portico/presets/local";
import type * as v from "valibot";
import { describe, expect, it } from "vitest";

/** Options that are no settings, by plugin: a preset or the service itself knows their values, or no administrator needs them. */
const NOT_SETTINGS: Readonly<Record<string, readonly string[]>> = {
  "model-proxy": ["spoolDir", "ownTokens", "ownTokenRotation", "instances"],
  "workflow-service": ["secretsRotation", "replacedKinds", "publicUrl", "token", "tokenRotation"],
  "conversations-runs": ["autoReplayRetentionMs", "tombstoneRetentionMs", "shownBytes", "version"],
  // `instance.mode` is a setting of the instance.
  "agent-webhook": ["mode"],
  "safe-tokens": ["credentials", "sources", "prices"],
  // `agent.editable` is a setting of the preset: the package of the operator's pages may be absent.
  "agent-documents": ["editable"],
};
/** Pages about the process, whose options are all from the service itself. */
const OF_THE_SERVICE = /^(?:listeners|measurements|log|limits|web-console|sign-in|tool-accounts|(?:metrics|api|probes)-\w+)$/;

interface Part {
  readonly wrapped?: Part;
  readonly pipe?: readonly Part[];
  readonly entries?: Readonly<Record<string, Part>>;
}
const entriesOf = (part: Part): Readonly<Record<string, Part>> =>
  part.entries ??
  (part.wrapped ? entriesOf(part.wrapped) : part.pipe?.[0] && part.pipe[0] !== part ? entriesOf(part.pipe[0]) : {});

/** The path of a part of the schema of the settings. A preset may give another default to a part. */
function settingOf(wanted: Part, at: Part = localSchema as Part): readonly string[] | undefined {
  for (const [key, entry] of Object.entries(entriesOf(at))) {
    if (entry === wanted || (entry.wrapped && entry.wrapped === wanted.wrapped)) return [key];
    const below = settingOf(wanted, entry);
    if (below) return [key, ...below];
  }
  return undefined;
}

const at = (value: any, path: readonly string[]): unknown => path.reduce((inner, key) => inner?.[key], value);

const options = await readPlatformOptions(
  { autoProviders: false, prices: { currency: "EUR", models: [] }, agent: { sessionIssuesMs: 60_000 } },
  { env: {} },
);
const { plugins = [], adapters = [] } = local(options);

/** The settings among the options of a part, each with the value that the preset passes on, and the other options. */
function found(
  entries: Readonly<Record<string, Part>>,
  given: any,
): { settings: [readonly string[], unknown][]; others: string[] } {
  const all = Object.entries(entries).map(([key, entry]) => {
    const path = settingOf(entry);
    if (path) return { settings: [[path, given?.[key]]] as [readonly string[], unknown][], others: [] };
    return Object.keys(entriesOf(entry)).length > 0 ? found(entriesOf(entry), given?.[key]) : { settings: [], others: [key] };
  });
  return { settings: all.flatMap(({ settings }) => settings), others: all.flatMap(({ others }) => others) };
}

describe.each(plugins.map(({ name, spec, options: given }) => [name, spec.config as Part, given] as const))(
  "the options of %s",
  (name, config, given) => {
    const { settings, others } = found(entriesOf(config), given);

    it("are settings of a preset, which passes their values on, or say why not", () => {
      expect(settings.map(([path, value]) => [path.join("."), value])).toEqual(
        settings.map(([path]) => [path.join("."), at(options.settings, path)]),
      );
      if (!OF_THE_SERVICE.test(name)) expect(others).toEqual(NOT_SETTINGS[name] ?? []);
    });

    it("have a variable or a description only if they are settings", () => {
      const described = listConfigKeys(config as v.GenericSchema).filter(({ env, description }) => env ?? description);
      const known = new Set(listConfigKeys(localSchema).map(({ env, description }) => `${env} ${description}`));
      expect(described.filter(({ env, description }) => !known.has(`${env} ${description}`))).toEqual([]);
    });
  },
);

it.each([
  ["agent-engines/loop", loopSettings],
  ["audit/records", auditSettings],
  ["telemetry/opentelemetry", telemetrySettings],
  ["usage/records", { ...usageSettings, ...pricesSettings }],
])("the options of %s are settings of a preset, which passes their values on", (name, entries) => {
  const given = adapters.find((adapter) => adapter.name === name)?.options;
  const { settings, others } = found(entries as Readonly<Record<string, object>>, given);
  expect(others).toEqual([]);
  expect(settings.length).toBeGreaterThan(0);
  expect(settings.map(([path, value]) => [path.join("."), value])).toEqual(
    settings.map(([path]) => [path.join("."), at(options.settings, path)]),
  );
});

it("plugins of a preset have settings", () => {
  const counts = plugins.map(({ spec, options: given }) => found(entriesOf(spec.config as Part), given).settings.length);
  expect(counts.filter((count) => count > 0).length).toBeGreaterThan(4);
});
