import type { Filter } from "./list-address.svelte.ts";

const HOUR_MS = 3_600_000;
const SINCE_MS = { "1h": HOUR_MS, "1d": 24 * HOUR_MS, "7d": 7 * 24 * HOUR_MS, "30d": 30 * 24 * HOUR_MS };
type Since = keyof typeof SINCE_MS;

export const SINCE: Readonly<Record<Since, string>> = {
  "1h": "The last hour",
  "1d": "The last day",
  "7d": "The last 7 days",
  "30d": "The last 30 days",
};

const written = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
/** A time of an address, for people. Undefined for a text that is no time. */
export function describeTime(value: string): string | undefined {
  const time = Date.parse(value);
  return Number.isNaN(time) ? undefined : written.format(time);
}

/** The filters of the time at which something started. */
export const TIME_FILTERS: readonly Filter[] = [
  { name: "since", title: "Started", describe: (value) => (Object.hasOwn(SINCE, value) ? SINCE[value as Since] : undefined) },
  { name: "from", title: "From", describe: describeTime },
  { name: "until", title: "Until", describe: describeTime },
];

/** The oldest time, and the time before which all is older (ISO 8601). Undefined without one. */
export function readRange(value: (name: string) => string): {
  readonly from: string | undefined;
  readonly until: string | undefined;
} {
  const [since, from, until] = [value("since"), value("from"), value("until")];
  // Whole seconds, so that the page is not read again because of a millisecond.
  const begin = Object.hasOwn(SINCE_MS, since)
    ? Math.floor(Date.now() / 1000) * 1000 - SINCE_MS[since as Since]
    : from === ""
      ? undefined
      : Date.parse(from);
  return {
    from: begin === undefined ? undefined : new Date(begin).toISOString(),
    until: until === "" ? undefined : new Date(until).toISOString(),
  };
}

/** The value of an input of the type `datetime-local`, in the reader's time zone. */
export function toLocal(time: string): string {
  const at = Date.parse(time);
  return Number.isNaN(at) ? "" : new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** The time of such an input, for the address. */
export function fromLocal(local: string): string {
  const at = local === "" ? Number.NaN : new Date(local).getTime();
  return Number.isNaN(at) ? "" : new Date(at).toISOString().replace(/:00\.000Z$/, "Z");
}
