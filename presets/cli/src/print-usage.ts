import { listAgentTexts } from "@portico/adapters/stores/agent-documents";
import { ports } from "@portico/core";
import { daysOf } from "@portico/core/kit";
import { USAGE_FIELDS, USAGE_RANGES, type UsageField, type UsageRange } from "@portico/operator/usage/contract";
import { toCsv } from "@portico/operator/usage/csv";
import { type ComparedSpan, spanOf } from "@portico/operator/usage/range";
import { readTable } from "@portico/operator/usage/report";
import { readDayBudgets } from "@portico/plugins/conversations-runs/day-limits";
import { agentsAt } from "@portico/presets/settings/documents-place";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { readSettings } from "./read-settings.ts";
import { readSince } from "./read-options.ts";
import type { SettingsFlags } from "./settings-flags.ts";
import { printable, printableJson } from "./terminal.ts";
import { hasStore, withStores } from "./store-app.ts";
import { budgetLines, tableLines } from "./usage-text.ts";

interface UsageFlags {
  readonly range?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly step?: string | undefined;
  readonly by?: string | undefined;
  readonly csv?: boolean | undefined;
  readonly json?: boolean | undefined;
}

const MINUTE_MS = 60_000;
const STEPS: readonly string[] = ["minute", "hour", "day"];
/** Rows of a printed table. All other values share one. */
const ROWS = 1000;

/**
 * Prints the usage of models. Opens the store itself: the same with and without a running service. Returns the exit code. Throws CommandFailed
 * (64, 69, 78).
 */
export async function printUsage(flags: SettingsFlags, wanted: UsageFlags): Promise<number> {
  const step = oneOf(STEPS, wanted.step, "--step") as ports.UsageQuery["step"];
  const range = oneOf(USAGE_RANGES, wanted.range, "--range") as UsageRange | undefined;
  if (range !== undefined && (wanted.since !== undefined || wanted.until !== undefined))
    throw new CommandFailed("Give either --range, or --since and --until", EXIT.usage);
  const own = { from: dayOrTime(wanted.since, "since"), to: dayOrTime(wanted.until, "until") };
  const by = (wanted.by ?? "model").split(",").filter((field) => field !== "");
  for (const field of by) oneOf(USAGE_FIELDS, field, "--by");
  const [field = "model", ...more] = by as UsageField[];
  const isList = step !== undefined || wanted.json === true || more.length > 0;
  if (isList && wanted.csv) throw new CommandFailed("Option --csv takes one field, and neither --step nor --json", EXIT.usage);
  const { settings } = await readSettings(flags);
  if (!hasStore(settings)) return EXIT.ok;
  return withStores(settings, { needed: [ports.records, ports.usage] }, async (app) => {
    const usage = app.port(ports.usage);
    const asked = { range, ...own, isWholeHours: step !== "minute" };
    const span = spanOf(asked, Date.now(), daysOf(usage.timeZone));
    if (!span) throw new CommandFailed("Option --until must be later than --since", EXIT.usage);
    if (isList) return printGroups(usage, { span, step, by: by as ports.UsageField[], isJson: wanted.json === true });
    const table = await readTable(usage, { span, by: field, top: ROWS, unit: range === "hour" ? "minute" : "hour" });
    if (wanted.csv) {
      process.stdout.write(toCsv(table, field).text);
      return EXIT.ok;
    }
    const budgets = await readDayBudgets({ usage, agents: agentsOf(settings), limits: settings.limits });
    const lines = [...tableLines(table, field), ...budgetLines(budgets)];
    for (const line of lines) console.log(line);
    if (lines.length === 0) console.error("No calls of models in this time.");
    return EXIT.ok;
  });
}

/** A line for each group. */
async function printGroups(
  usage: ports.Usage,
  asked: Pick<ports.UsageQuery, "step" | "by"> & { readonly span: ComparedSpan; readonly isJson: boolean },
): Promise<number> {
  const { span, step, by, isJson } = asked;
  // The first bucket is the one that contains the beginning.
  const since = step === "minute" ? span.since - (span.since % MINUTE_MS) : span.since;
  const { groups, currency } = await usage.read({ since, until: span.until, step, by });
  for (const group of groups) console.log(isJson ? printableJson(flat(group, currency)) : lineOf(group, currency));
  return EXIT.ok;
}

/** The agents with the limits of their documents. */
function agentsOf(settings: PlatformSettings) {
  return {
    list: () =>
      listAgentTexts(agentsAt(settings.agent)).catch((error: unknown) => {
        if (!(error instanceof ports.DocumentsUnavailable)) throw error;
        console.error(`The limits of agents cannot be read: ${error.message}`);
        return [];
      }),
  };
}

/** A day as it is written, which is one of `usage.timeZone`, or else a time in ISO 8601. */
function dayOrTime(written: string | undefined, option: string): string | undefined {
  if (written === undefined) return undefined;
  const at = readSince(written, option);
  return /^\d{4}-\d\d-\d\d$/.test(written) ? written : new Date(at).toISOString();
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
