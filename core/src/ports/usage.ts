import { definePort, type Port } from "../grammar/port.ts";

/**
 * Counts and latencies of model calls, by who made them and what they called, and of other work by how it ended. They are kept by minute for
 * 25 hours, and by hour and day for 400 days. A call belongs to the minute in which it began. Counts have ids and names, and never a prompt, an
 * answer or a credential.
 */
export interface Usage {
  /** IANA time zone of days and daily limits. */
  readonly timeZone: string;
  /**
   * Note a call that is about to be sent. It counts as `unknown` until its usage is reported, also after a kill. Durable when this
   * resolves: calls of one moment share a commit. Waits while the store is away. Rejects with the signal's reason.
   */
  begin(subject: UsageSubject, signal: AbortSignal): Promise<UsageCall>;
  /** The same without a wait: durable within a second, so that a kill may lose that second. */
  note(subject: UsageSubject): UsageCall;
  /** Sums of calls. Processes see each other's calls after a second. Throws UsageTooWide, and RangeError for a query without time. */
  read(query: UsageQuery): Promise<UsageReport>;
  /**
   * Sums and latencies of calls over time, for charts. Processes see each other's calls after a second. Throws UsageTooWide for more
   * than `USAGE_STEPS` steps, and RangeError for a query without time.
   */
  series(query: UsageSeriesQuery): Promise<UsageSeriesReport>;
  /**
   * The calls of the current day, for limits. Counts of this process are exact; those of other processes are at most some seconds
   * late.
   */
  today(): Promise<UsageDay>;
  /**
   * Count work that has ended, with calls of models or without. Durable within ten seconds, so that a kill may lose the counts of ten seconds. It
   * belongs to the minute in which it ended.
   */
  ended(work: EndedWork): void;
  /**
   * Ended work over time, for charts. Processes see each other's work after ten seconds. Throws UsageTooWide for more than `USAGE_STEPS`
   * steps, and RangeError for a query without time.
   */
  work(query: EndedWorkQuery): Promise<EndedWorkReport>;
}

/** A call that was noted. */
export interface UsageCall {
  /**
   * Report how the call ended. Durable within a second; a kill before that leaves the call `unknown`. Later reports are ignored. Returns what
   * the call cost. Undefined if its usage is not known, or has no price.
   */
  end(end: UsageEnd): UsageCost | undefined;
}

/** Money by the price table. */
export interface UsageCost {
  readonly cost: number;
  readonly currency: string;
}

/** What one or several model calls used. A field is absent if it is not known. */
export interface ModelUsage extends Partial<UsageCost> {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
}

/** Who called what. */
export interface UsageSubject {
  readonly source: "agent" | "workflow" | "proxy";
  /** Provider configuration id. */
  readonly provider: string;
  readonly model: string;
  readonly userId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly workflowId?: string | undefined;
  /** The id of the safe token, which is no credential. */
  readonly tokenId?: string | undefined;
}

/** How a call ended. Without both counts of tokens, it stays `unknown`, unless it was refused. */
export interface UsageEnd {
  /** Includes the tokens that were read from or written to a cache. */
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  /** The part of `inputTokens` that was read from a cache. */
  readonly cachedInputTokens?: number | undefined;
  /** The part of `inputTokens` that was written to a cache. */
  readonly cacheWriteTokens?: number | undefined;
  /** The provider answered with an error status, and so reports no usage. */
  readonly isRefused?: boolean | undefined;
  /** The call failed. Refused calls are failed ones, and calls whose caller left are not. */
  readonly isFailed?: boolean | undefined;
  /** Milliseconds from the call to the end of its whole answer. Ignored for a call that failed. */
  readonly durationMs?: number | undefined;
  /** Milliseconds from the call to the first part of a streamed answer. */
  readonly firstTokenMs?: number | undefined;
}

/** Sums of calls. */
export interface UsageSums {
  readonly calls: number;
  /** Calls that the provider refused with an error status. */
  readonly refused: number;
  /** Calls that failed, with those that were refused. Calls that a kill cut are not known to have failed. */
  readonly failed: number;
  /** Calls whose usage is not known: cut, still running, or not reported. */
  readonly unknown: number;
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  /** Money in the currency of the price table. Zero without prices. */
  readonly cost: number;
  /** Calls with tokens for which the table has no price. They are not part of `cost`. */
  readonly unpriced: number;
}

/** A field of `UsageSubject`. */
export type UsageField = keyof UsageSubject;

/** Which calls to sum, and how. */
export interface UsageQuery {
  /** Milliseconds since 1970: calls that began in the buckets from this time on. */
  readonly since: number;
  /** Calls that began in buckets before this time. */
  readonly until: number;
  /** The length of a group. Days are those of the adapter's time zone. Default: one group for the whole time. */
  readonly step?: "minute" | "hour" | "day" | undefined;
  /** Groups have these fields. Default: none. */
  readonly by?: readonly UsageField[] | undefined;
  /** Only calls with these values. */
  readonly where?: Partial<UsageSubject> | undefined;
}

/** The sums of one group. */
export interface UsageGroup {
  /** Milliseconds since 1970 at which the step begins; `since` without a step. */
  readonly at: number;
  /** The fields of `by`. A field that a call does not have is absent. */
  readonly subject: Partial<UsageSubject>;
  readonly sums: UsageSums;
}

/** The answer to a query. */
export interface UsageReport {
  /** The oldest first. */
  readonly groups: readonly UsageGroup[];
  /** The currency of `cost`. Undefined without prices. */
  readonly currency: string | undefined;
}

/** Work that has ended: a turn of an agent, a run of a workflow, an event of a webhook, or an HTTP request. */
export interface EndedWork {
  readonly kind: EndedWorkKind;
  /** Id of the agent, of the workflow, of the agent with the webhook, or the area of the request. Never a text that a caller can invent. */
  readonly name: string;
  readonly outcome: EndedWorkOutcome;
  /** Milliseconds from its beginning to its end. Only those of completed work are kept. */
  readonly durationMs?: number | undefined;
}

/** What kind of work has ended. */
export type EndedWorkKind = "turn" | "run" | "webhook" | "request";

/**
 * How work ended. A webhook event is completed if it was accepted, and failed if it was refused. A request is failed with status 500 or higher or
 * if its answer broke, cancelled if its caller left, and completed otherwise. `cancelled`: a user or caller stopped it. `interrupted`: anything
 * else stopped it.
 */
export type EndedWorkOutcome = "completed" | "failed" | "cancelled" | "interrupted";

/** Which ended work to show over time. */
export interface EndedWorkQuery extends Pick<UsageSeriesQuery, "since" | "until" | "step" | "top"> {
  /** A series for each name of this kind. Default: a series for each kind. */
  readonly kind?: EndedWorkKind | undefined;
}

/** The answer to a query of ended work. */
export interface EndedWorkReport extends Pick<UsageSeriesReport, "steps" | "timeZone"> {
  /** Those with the most work first, and the shared one last. Empty without work. */
  readonly series: readonly EndedWorkSeries[];
}

/** The ended work of one kind, or of one name, over time. */
export interface EndedWorkSeries {
  /** The kind, or the name if the query has a kind. Undefined if `isRest`. */
  readonly value: string | undefined;
  /** The series of all names that have none of their own. */
  readonly isRest: boolean;
  /** One for each step. */
  readonly points: readonly EndedWorkPoint[];
}

/** The ended work of one step. */
export interface EndedWorkPoint {
  readonly counts: Readonly<Record<EndedWorkOutcome, number>>;
  /** Of completed work. */
  readonly duration: UsageLatency;
}

/** Which calls to show over time. */
export interface UsageSeriesQuery {
  /** Milliseconds since 1970, in the first step. */
  readonly since: number;
  /** Steps that begin before this time. */
  readonly until: number;
  /** Days are those of the adapter's time zone. */
  readonly step: "minute" | "hour" | "day";
  /** A series for each value of this field. Default: one series for all calls. */
  readonly by?: UsageField | undefined;
  /** Only calls with these values. */
  readonly where?: Partial<UsageSubject> | undefined;
  /** The first values have series of their own, at most this number. All others share one. */
  readonly top: number;
  /** Which values are first: those with the most calls, or with the most cost. Values of equal cost are compared by their tokens. Default: `calls`. */
  readonly order?: "calls" | "cost" | undefined;
}

/** The answer to a query of series. */
export interface UsageSeriesReport {
  /** Milliseconds since 1970 at which each step begins, also of steps without calls. The first one contains `since`. */
  readonly steps: readonly number[];
  /** IANA time zone of steps of a day. */
  readonly timeZone: string;
  /** The currency of `cost`. Undefined without prices. */
  readonly currency: string | undefined;
  /** In the order of the query, and the shared one last. Empty without calls. */
  readonly series: readonly UsageSeries[];
}

/** The calls of one value over time. */
export interface UsageSeries {
  /** The value of `by`. Undefined for calls that do not have the field, without `by`, and if `isRest`. */
  readonly value: string | undefined;
  /** The series of all values that have none of their own. */
  readonly isRest: boolean;
  /** One for each step. */
  readonly points: readonly UsagePoint[];
}

/** The calls of one step. */
export interface UsagePoint {
  readonly sums: UsageSums;
  /** Of calls that did not fail. */
  readonly duration: UsageLatency;
  /** Of streamed answers. */
  readonly firstToken: UsageLatency;
}

/** Percentiles in milliseconds, from buckets whose bounds are 19 % apart. Undefined without a call. */
export interface UsageLatency {
  readonly p50: number | undefined;
  readonly p95: number | undefined;
}

/** The current day. */
export interface UsageDay {
  /** Milliseconds since 1970. */
  readonly since: number;
  /** When the next day begins, and daily limits with it. */
  readonly until: number;
  /** The currency of `cost`. Undefined without prices. */
  readonly currency: string | undefined;
  readonly groups: readonly { readonly subject: UsageSubject; readonly sums: UsageSums }[];
}

/** Most groups of one report. */
export const USAGE_GROUPS = 10_000;

/** Most steps of one report of series. */
export const USAGE_STEPS = 2000;

/** Thrown by `read` for a query with more than `USAGE_GROUPS` groups, and by `series` for more than `USAGE_STEPS` steps. */
export class UsageTooWide extends Error {
  override readonly name = "UsageTooWide";
}

/** The port of usage. Areas need it with `optional`: without it, they count nothing. */
export const usage: Port<Usage> = definePort<Usage>("usage");
