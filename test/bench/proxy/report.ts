import type { MixedResult } from "./mixed.ts";
import type { Standing } from "./race.ts";
import type { Kind } from "./workload.ts";

/** The results of one race, with its kind of call and its concurrency. */
export interface Race {
  readonly kind: Kind;
  readonly connections: number;
  readonly standings: readonly Standing[];
}

const SAME_OF_BARE = 0.8;
const CONVERTING_OF_BARE = 0.6;
const ADDED_MS = 0.5;
const OTHERS_P99_MS = 50;
const PEAK_MIB = 400;

/** A race as a table in Markdown. */
export function raceTable({ kind, connections, standings }: Race): string {
  const bareCpu = standings.find((each) => each.contestant.role === "bare")?.cpu;
  const rows = standings.map(({ contestant, perSecond, p50, p99, added, cpu, ofBare }) => [
    contestant.name,
    perSecond.toFixed(0),
    p50.toFixed(2),
    p99.toFixed(2),
    contestant.role === "straight" ? "" : added.toFixed(2),
    cpu?.toFixed(0) ?? "not told",
    ofBare.toFixed(2),
    contestant.role === "straight" || !cpu || !bareCpu ? "" : (cpu / bareCpu).toFixed(2),
  ]);
  const what = kind === "plain" ? "whole answers" : "streams of 50 chunks";
  const header = ["", `${unitOf(kind)}/s`, "p50 ms", "p99 ms", "added p50 ms", "CPU µs", "rate ÷ bare", "CPU ÷ bare"];
  return `${what}, ${connections} at a time\n\n${table(header, rows)}`;
}

/** The uploads as a table in Markdown. */
export function mixedTable(results: readonly MixedResult[]): string {
  const rows = results.map(({ name, seconds, quietP99, p99, slowest, peakMemory }) => [
    name,
    seconds.toFixed(1),
    quietP99.toFixed(1),
    p99.toFixed(1),
    slowest.toFixed(0),
    peakMemory?.toFixed(0) ?? "not told",
  ]);
  return table(["one upload beside 16 callers", "upload s", "p99 ms before", "p99 ms during", "slowest ms", "peak MiB"], rows);
}

/** One line per target: whether this run met it. */
export function verdicts(races: readonly Race[], mixed: readonly MixedResult[]): string[] {
  return [...rateVerdicts(races), ...latencyVerdicts(races), ...uploadVerdicts(mixed)];
}

/**
 * A rate with one call at a time is a latency, which has its own target. So only races with several connections have a target for rates.
 */
function rateVerdicts(races: readonly Race[]): string[] {
  const targets = { same: SAME_OF_BARE, converting: CONVERTING_OF_BARE } as const;
  return (["plain", "stream"] as const).flatMap((kind) => {
    const busy = races.filter((race) => race.kind === kind && race.connections > 1);
    const names = new Set(busy.flatMap((race) => race.standings.map((each) => each.contestant)));
    return [...names].flatMap((contestant) => {
      const target = contestant.role === "same" || contestant.role === "converting" ? targets[contestant.role] : undefined;
      if (target === undefined) return [];
      const found = busy.map(({ connections, standings }) => ({
        connections,
        ofBare: standings.find((each) => each.contestant === contestant)!.ofBare,
      }));
      const text = found.map((each) => `${each.ofBare.toFixed(3)} (${each.connections} at a time)`).join(", ");
      const isMet = found.every((each) => each.ofBare >= target);
      return [verdict(isMet, `${contestant.name}, ${kind}: ${text} of bare, target ${target.toFixed(1)}`)];
    });
  });
}

function latencyVerdicts(races: readonly Race[]): string[] {
  return races
    .filter((race) => race.connections === 1)
    .flatMap(({ kind, standings }) =>
      standings
        .filter(({ contestant }) => contestant.role === "same" || contestant.role === "converting")
        .map(({ contestant, added }) =>
          verdict(added < ADDED_MS, `${contestant.name}, ${kind}: adds ${added.toFixed(2)} ms, target ${ADDED_MS} ms`),
        ),
    );
}

function uploadVerdicts(mixed: readonly MixedResult[]): string[] {
  return mixed.map(({ name, p99, peakMemory }) => {
    const memory = peakMemory === undefined ? "memory not told" : `peak ${peakMemory.toFixed(0)} MiB`;
    const isMet = p99 < OTHERS_P99_MS && (peakMemory === undefined || peakMemory < PEAK_MIB);
    const targets = `targets ${OTHERS_P99_MS} ms and ${PEAK_MIB} MiB`;
    return verdict(isMet, `${name}: p99 of the others ${p99.toFixed(1)} ms, ${memory}, ${targets}`);
  });
}

function verdict(isMet: boolean, text: string): string {
  return `${isMet ? "met   " : "MISSED"}  ${text}`;
}

function unitOf(kind: Kind): string {
  return kind === "plain" ? "requests" : "streams";
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const padded = (cell: string, column: number) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!));
  const line = (cells: readonly string[]) => `| ${cells.map(padded).join(" | ")} |`;
  const rule = widths.map((width, column) => (column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [line(header), line(rule), ...rows.map(line)].join("\n");
}
