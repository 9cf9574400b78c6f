import { describeDuration } from "../duration.ts";
import type { Filter, ListAddress, ListColumn } from "../list/list-address.svelte.ts";
import { describeTime, readRange, TIME_FILTERS } from "../list/time-range.ts";
import type { Tone } from "../StatusBadge.svelte";

/** A filter of a list of runs. */
export interface RunFilter extends Filter {
  /** Default: a text. `none`: the control of another filter sets it. */
  readonly control?: "time" | "fields" | "none";
  /** Titles by value. The user chooses one of them. */
  readonly choices?: Readonly<Record<string, string>>;
  /** The title of no choice. */
  readonly usual?: string;
  /** The label of the control. Default: the title. */
  readonly label?: string;
  readonly placeholder?: string;
  readonly maxlength?: number;
  /** Known names of `fields`. */
  readonly fields?: readonly string[] | undefined;
  /** It is hidden at first. */
  readonly isMore?: boolean;
  /** What a search asks for a value, which may be empty. Default: the value, under the name of the filter. */
  readonly ask?: (value: string, address: ListAddress) => Readonly<Record<string, string | undefined>>;
}

/** `name=value`, as searches take fields. */
export const FIELD = /^[A-Za-z_][^=]*=/;

/** A filter with known values. Unknown ones count as absent. */
export function choiceFilter(filter: RunFilter & { readonly choices: Readonly<Record<string, string>> }): RunFilter {
  return { ...filter, describe: (value) => (Object.hasOwn(filter.choices, value) ? filter.choices[value] : undefined) };
}

/** The filters of the time at which a run began, with the parameters of a search. */
export function timeFilters(oldest: string, before: string): readonly RunFilter[] {
  const ask: RunFilter["ask"] = (_value, address) => {
    const { from, until } = readRange((name) => address.value(name));
    return { [oldest]: from, [before]: until };
  };
  return TIME_FILTERS.map((filter, index) => ({ ...filter, control: index === 0 ? "time" : "none", ask }));
}

/** The time since which a run ended. Links of the overview set it. */
export function endedFilter(parameter: string): RunFilter {
  return {
    name: "ended",
    title: "Ended since",
    control: "none",
    describe: describeTime,
    ask: (ended) => ({ [parameter]: ended }),
  };
}

/** The query of a search, without its page. */
export function queryOf(filters: readonly RunFilter[], address: ListAddress): Record<string, string | string[]> {
  const asked = filters.flatMap(({ name, isList, ask = (value: string) => ({ [name]: value }) }) =>
    Object.entries(isList ? { [name]: [...address.values(name)] } : ask(address.value(name), address)),
  );
  return Object.fromEntries(asked.filter(([, value]) => value !== undefined && value !== "")) as Record<
    string,
    string | string[]
  >;
}

/** What a cell of a run shows. */
export type RunCellValue =
  | { readonly as: "name"; readonly text: string; readonly href: string; readonly note?: string | undefined }
  | { readonly as: "id"; readonly text: string; readonly href: string }
  | { readonly as: "text"; readonly text: string; readonly href?: string }
  /** Two lines of a text that may be long. */
  | { readonly as: "excerpt" | "error"; readonly text: string }
  | { readonly as: "number"; readonly text: string; readonly parts?: string }
  | { readonly as: "time"; readonly at: string }
  | ({ readonly as: "status" } & RunStatusWords)
  /** A button: with an address, or with what it does. */
  | { readonly as: "button"; readonly text: string; readonly href: string }
  | { readonly as: "button"; readonly text: string; readonly act: () => Promise<void> };

/** The status of a run, in words. */
export interface RunStatusWords {
  readonly text: string;
  readonly tone: Tone;
  /** Why it has this status, and the whole message. */
  readonly why?: string | undefined;
  readonly message?: string | undefined;
}

/** A column of a list of runs. */
export interface RunColumn<Run> extends ListColumn {
  readonly cell: (run: Run) => RunCellValue | undefined;
}

/** The columns that tell what a run needed. */
export function workColumns<Run>(workOf: (run: Run) => { readonly ms: number | undefined; readonly used: Used | undefined }) {
  const number = (text: string | undefined, parts?: string): RunCellValue | undefined =>
    text ? { as: "number", text, ...(parts !== undefined && { parts }) } : undefined;
  return [
    {
      ...{ id: "duration", title: "Duration", align: "end", isShown: "unless" },
      cell(run) {
        const { ms } = workOf(run);
        return number(ms === undefined ? undefined : describeDuration(ms));
      },
    },
    {
      ...{ id: "tokens", title: "Tokens", align: "end", isShown: "if" },
      cell(run) {
        const tokens = writeTokens(workOf(run).used);
        return number(tokens?.all, tokens?.parts);
      },
    },
    {
      ...{ id: "cost", title: "Cost", align: "end", isShown: "if" },
      cell: (run) => number(writeCost(workOf(run).used)),
    },
  ] satisfies RunColumn<Run>[];
}

/** What models used, as services tell it. */
interface Used {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly cost?: number | undefined;
  readonly currency?: string | undefined;
}

const whole = new Intl.NumberFormat();
const money = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 4 });

/** All tokens, and both parts of them. Undefined if none were reported. */
function writeTokens({ inputTokens, outputTokens }: Used = {}): { readonly all: string; readonly parts: string } | undefined {
  if (inputTokens === undefined && outputTokens === undefined) return undefined;
  const [read, written] = [inputTokens ?? 0, outputTokens ?? 0];
  return { all: whole.format(read + written), parts: `${whole.format(read)} in, ${whole.format(written)} out` };
}

/** Money with its currency, which may be any text. Empty if it is not known. */
function writeCost({ cost, currency = "" }: Used = {}): string {
  return cost === undefined ? "" : `${money.format(cost)} ${currency}`.trim();
}
