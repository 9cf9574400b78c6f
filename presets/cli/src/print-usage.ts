import { ports } from "@portico/core";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { readSettings } from "./read-settings.ts";
import { readSince } from "./read-options.ts";
import type { SettingsFlags } from "./settings-flags.ts";
import { printable, printableJson } from "./terminal.ts";
import { hasStore, withStores } from "./store-app.ts";

interface UsageFlags {
  readonly since?: string | undefined;
  readonly step?: string | undefined;
  readonly by?: string | undefined;
  readonly json?: boolean | undefined;
}

const DEFAULT_SINCE = "24h";
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const STEPS: readonly string[] = ["minute", "hour", "day"];
const FIELDS: readonly string[] = ["source", "provider", "model", "userId", "agentId", "workflowId", "tokenId"];

/**
 * Prints the usage of models. Opens the store itself: the same with and without a running service. Returns the exit code. Throws CommandFailed
 * (64, 69, 78).
 */
export async function printUsage(flags: SettingsFlags, wanted: UsageFlags): Promise<number> {
  const begin = readSince(wanted.since ?? DEFAULT_SINCE);
  const step = oneOf(STEPS, wanted.step, "--step") as ports.UsageQuery["step"];
  const by = (wanted.by ?? "model").split(",").filter((field) => field !== "");
  for (const field of by) oneOf(FIELDS, field, "--by");
  const { settings } = await readSettings(flags);
  if (!hasStore(settings)) return EXIT.ok;
  return withStores(settings, { needed: [ports.records, ports.usage] }, async (app) => {
    const { groups, currency } = await app.port(ports.usage).read({
      // The first bucket is the one that contains the beginning.
      since: begin - (begin % (step === "minute" ? MINUTE_MS : HOUR_MS)),
      until: Date.now() + 1,
      step,
      by: by as ports.UsageField[],
    });
    for (const group of groups) console.log(wanted.json ? printableJson(flat(group, currency)) : lineOf(group, currency));
    return EXIT.ok;
  });
}

function oneOf(known: readonly string[], written: string | undefined, option: string): string | undefined {
  if (written !== undefined && !known.includes(written))
    throw new CommandFailed(`Option ${option} takes ${known.join(", ")}`, EXIT.usage);
  return written;
}

function flat({ at, subject, sums: { cost, unpriced, ...sums } }: ports.UsageGroup, currency: string | undefined): object {
  const money = currency === undefined ? {} : { cost, unpriced, currency };
  return { at: new Date(at).toISOString(), ...subject, ...sums, ...money };
}

/** One line for a person: since when, of what, how many calls and tokens, and for how much. */
function lineOf({ at, subject, sums }: ports.UsageGroup, currency: string | undefined): string {
  const { calls, refused, failed, unknown, inputTokens, cachedInputTokens, outputTokens, cost, unpriced } = sums;
  const parts = [
    new Date(at).toISOString(),
    ...Object.values(subject),
    `${calls} calls`,
    refused === 0 ? "" : `${refused} refused`,
    failed === refused ? "" : `${failed} failed`,
    unknown === 0 ? "" : `${unknown} unknown`,
    `${inputTokens} in${cachedInputTokens === 0 ? "" : ` (${cachedInputTokens} cached)`}`,
    `${outputTokens} out`,
    currency === undefined ? "" : `${cost.toFixed(4)} ${currency}`,
    currency === undefined || unpriced === 0 ? "" : `${unpriced} without a price`,
  ];
  return printable(parts.filter((part) => part !== "").join("  "));
}
