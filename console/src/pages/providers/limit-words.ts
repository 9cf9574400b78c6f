import type { CallResult } from "@portico/core/client";
import type { limitsContract } from "@portico/operator/limits/contract";

export type Limit = CallResult<typeof limitsContract.limits>["limits"][number];

/** The groups, in the order of the page. */
export const GROUPS: readonly { readonly id: Limit["group"]; readonly title: string }[] = [
  { id: "usage", title: "Usage" },
  { id: "turns", title: "Turns" },
  { id: "uploads", title: "Uploads" },
  { id: "requests", title: "Requests" },
  { id: "workflows", title: "Workflows" },
];

export const SUBJECTS: Readonly<Record<Limit["appliesTo"], string>> = {
  instance: "The instance",
  process: "Each process",
  user: "Each user",
  agent: "Each agent",
  turn: "Each turn",
  request: "Each request",
  file: "Each file",
  run: "Each run",
};

const BYTES = ["bytes", "KiB", "MiB", "GiB"] as const;
const TIMES = [
  [60 * 60_000, "hour"],
  [60_000, "minute"],
  [1000, "second"],
] as const;

/** `20 MB`, `30 minutes`, `1,000 tokens`. */
export function limitInWords({ value, unit }: Limit, currency: string | undefined): string {
  if (value === null) return "No limit";
  if (unit === "bytes") return bytesInWords(value);
  if (unit === "milliseconds") {
    const [ms, name] = TIMES.find(([each]) => value >= each && value % each === 0) ?? TIMES[2];
    const format = new Intl.NumberFormat(undefined, { style: "unit", unit: name, unitDisplay: "long", maximumFractionDigits: 1 });
    return format.format(value / ms);
  }
  if (unit === "money") return [value.toLocaleString(), currency].join(" ").trim();
  return `${value.toLocaleString()} ${value === 1 ? unit.replace(/s$/, "") : unit}`;
}

/** Limits of bytes are powers of two, and exact. */
function bytesInWords(value: number): string {
  let step = 0;
  while (step < BYTES.length - 1 && value % 1024 ** (step + 1) === 0) step++;
  return `${(value / 1024 ** step).toLocaleString()} ${BYTES[step]}`;
}
