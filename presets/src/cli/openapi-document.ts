import { type Contract, flattenPreset } from "@portico/core";
import { type OpenAPIDocument, type SecurityScheme, toOpenAPI } from "@portico/core/openapi";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { DEFAULT_PRESET, loadPreset } from "./preset-table.ts";
import { readSettings } from "./read-settings.ts";
import type { SettingsFlags } from "./settings-flags.ts";
import { VERSION } from "../platform/version.ts";

/** How the credentials of the areas are presented (specification 5), by the names that their contracts use. */
const SECURITY: Readonly<Record<string, SecurityScheme | readonly SecurityScheme[]>> = {
  "safe-token": [
    { type: "http", scheme: "bearer", description: "A safe token" },
    { type: "apiKey", in: "header", name: "x-api-key", description: "A safe token; wins when both are sent" },
  ],
  service: { type: "apiKey", in: "header", name: "X-Workflow-Service-Token", description: "The workflow service's token" },
  instance: { type: "apiKey", in: "header", name: "X-Agent-Service-Token", description: "A token of the agent service" },
  owner: { type: "apiKey", in: "header", name: "X-Agent-Service-Token", description: "An owner's token of the agent service" },
};

/** The OpenAPI document of a preset, or of one of its surfaces. Throws CommandFailed (64) for a preset or a surface that is not there. */
export async function describePreset(
  flags: SettingsFlags,
  wanted: { readonly preset?: string | undefined; readonly surface?: string | undefined },
): Promise<OpenAPIDocument> {
  const preset = await loadPreset(wanted.preset ?? DEFAULT_PRESET);
  const { settings } = await readSettings(flags);
  // Contracts are data: nothing has to be opened to read them.
  const { plugins } = flattenPreset(preset.build({ settings, providers: [] }));
  const contracts: Record<string, Contract> = Object.fromEntries(
    plugins.map(({ name, spec }) => [name, spec.contract as Contract]),
  );
  const surfaces = [
    ...new Set(Object.values(contracts).flatMap((contract) => Object.values(contract).map((route) => route.surface))),
  ];
  const { surface } = wanted;
  if (surface !== undefined && !surfaces.includes(surface)) {
    throw new CommandFailed(
      `The preset "${preset.name}" has no surface "${surface}"; it has ${surfaces.join(" and ")}`,
      EXIT.usage,
    );
  }
  const title = `Portico ${preset.name}${surface === undefined ? "" : `: ${surface}`}`;
  return toOpenAPI({ title, version: VERSION }, contracts, { security: SECURITY, ...(surface !== undefined && { surface }) });
}
