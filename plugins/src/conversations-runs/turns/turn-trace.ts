import { addModelUsage, type ports } from "@portico/core";
import { TRACE_ENTRIES, TRACE_FIRST_ENTRIES, TRACE_NAME_CHARACTERS } from "../limits.ts";
import { type Decision, STATUS } from "./recorded-call.ts";
import type { PlayedTurn } from "./turn.ts";
import type { StoredTrace, TraceEntry } from "../trace-entry.ts";

/** The trace of a turn until it waits for a person. */
export interface TraceBefore {
  readonly entries: readonly TraceEntry[];
  readonly leftOut: number;
  /** Milliseconds from the arrival to the wait. */
  readonly waitsAt: number;
  /** What the model calls used. Absent if the engine reports none. */
  readonly usage?: ports.ModelUsage | undefined;
}

type Measured = Omit<TraceEntry, "start_ms" | "duration_ms">;

/**
 * The trace of a turn, from its arrival to its receipt: spans for the operators, and a short form that its receipt keeps. Names, times and
 * codes only. Before the execution, times are those of the clock; from then on of a clock that is never set.
 */
export class TurnTrace {
  readonly #telemetry: ports.Telemetry;
  readonly #arrivedAt: number;
  /** Milliseconds from the arrival to the execution, and when that began. */
  readonly #before: number;
  readonly #beganAt = performance.now();
  readonly #entries: TraceEntry[] = [];
  #leftOut = 0;
  #usage: ports.ModelUsage | undefined;
  /** Entries whose spans were told before a wait. */
  #reportedBefore = 0;
  #work: ports.WorkTrace | undefined;
  #traceId: string | undefined;
  #endedAt: number | undefined;

  /** `before`: of a turn that goes on after a wait. */
  constructor(
    { arrivedAt, acceptedAt }: PlayedTurn,
    { clock, telemetry }: { clock: ports.Clock; telemetry: ports.Telemetry },
    before?: TraceBefore,
  ) {
    this.#telemetry = telemetry;
    const now = clock.now();
    const accepted = Math.min(acceptedAt, now);
    this.#arrivedAt = Math.min(arrivedAt ?? accepted, accepted);
    this.#before = now - this.#arrivedAt;
    if (before) {
      this.#entries.push(...before.entries);
      this.#leftOut = before.leftOut;
      this.#usage = before.usage;
      this.#reportedBefore = before.entries.length;
      this.#add({ kind: "wait", start_ms: before.waitsAt, duration_ms: rounded(Math.max(0, this.#before - before.waitsAt)) });
      return;
    }
    const admission = accepted - this.#arrivedAt;
    this.#add({ kind: "admission", start_ms: 0, duration_ms: admission });
    this.#add({ kind: "queue", start_ms: admission, duration_ms: this.#before - admission });
  }

  /** Milliseconds since the arrival. */
  get ageMs(): number {
    return this.#before + performance.now() - this.#beganAt;
  }

  /** The beginning is written: what follows belongs to this work. */
  open(work: ports.WorkTrace): void {
    this.#work = work;
    const start = this.#entry({ kind: "start" }, this.#beganAt, performance.now());
    this.#add(start);
    work.run(() => {
      this.#traceId = /^00-([0-9a-f]{32})-/.exec(this.#telemetry.traceparent() ?? "")?.[1];
      for (const entry of this.#entries.slice(this.#reportedBefore)) this.#report(entry);
    });
  }

  /** What the model calls have used so far. Undefined if the engine reports no calls. */
  get usage(): ports.ModelUsage | undefined {
    return this.#usage;
  }

  /** One ended model call. */
  modelCalled(call: ModelCall): void {
    const { provider, model, durationMs, firstTokenMs, inputTokens, outputTokens, cost, currency, dropped, error } = call;
    this.#usage = addModelUsage(this.#usage, { inputTokens, outputTokens, cost, currency });
    const endedAt = performance.now();
    const facts: Measured = {
      kind: "model",
      name: model,
      provider,
      ...(firstTokenMs !== undefined && { first_token_ms: rounded(firstTokenMs) }),
      ...(inputTokens !== undefined && { input_tokens: inputTokens }),
      ...(outputTokens !== undefined && { output_tokens: outputTokens }),
      ...(cost !== undefined && { cost, currency }),
      ...(dropped && { dropped: cut(dropped.join(", ")) }),
      ...(error !== undefined && { error }),
    };
    this.#add(this.#entry(facts, endedAt - Math.max(0, durationMs), endedAt));
  }

  /** A tool's call, with the time that it waits for other tools, and the decision of a person about it. */
  async tool(toolId: string, decision: Decision | undefined, call: () => Promise<ports.ToolResult>): Promise<ports.ToolResult> {
    const beganAt = performance.now();
    let error: string | undefined = "aborted";
    try {
      const result = await call();
      error = result.isError ? "tool_error" : undefined;
      return result;
    } finally {
      const facts: Measured = {
        kind: "tool",
        name: toolId,
        ...(error !== undefined && { error }),
        ...(decision && { decision: STATUS[decision.decision], decided_at: new Date(decision.at).toISOString() }),
        ...(decision?.userId !== undefined && { decided_by: decision.userId }),
        ...(decision?.arguments !== undefined && { edited: true }),
      };
      this.#add(this.#entry(facts, beganAt, performance.now()));
    }
  }

  /** What a turn keeps that begins to wait for a person now. */
  toResume(): TraceBefore {
    return { entries: this.#entries, leftOut: this.#leftOut, waitsAt: rounded(this.ageMs), usage: this.#usage };
  }

  /** The agent has ended: what follows is the delivery. */
  ended(): void {
    this.#endedAt = performance.now();
  }

  /** The end is written. */
  delivered(): void {
    const { kind, start_ms, duration_ms } = this.#delivery();
    this.#work?.run(() => this.#report({ kind, start_ms, duration_ms }));
  }

  /** The short form, for a receipt that is written now. */
  toStored(): StoredTrace {
    return {
      began_at: new Date(this.#arrivedAt).toISOString(),
      ...(this.#traceId !== undefined && { trace_id: this.#traceId }),
      entries: [...this.#entries, this.#delivery()],
      ...(this.#usage && { usage: this.#usage }),
      ...(this.#leftOut > 0 && { left_out: this.#leftOut }),
    };
  }

  #delivery(): TraceEntry {
    const now = performance.now();
    return this.#entry({ kind: "delivery" }, this.#endedAt ?? now, now);
  }

  /** Of many entries, the first and the last stay. */
  #add(entry: TraceEntry): void {
    this.#entries.push(entry);
    if (this.#entries.length < TRACE_ENTRIES) return;
    this.#entries.splice(TRACE_FIRST_ENTRIES, 1);
    this.#leftOut++;
  }

  #entry({ name, provider, error, ...facts }: Measured, beganAt: number, endedAt: number): TraceEntry {
    const start = this.#before + beganAt - this.#beganAt;
    return {
      ...facts,
      ...(name !== undefined && { name: cut(name) }),
      ...(provider !== undefined && { provider: cut(provider) }),
      ...(error !== undefined && { error: cut(error) }),
      start_ms: rounded(Math.max(0, start)),
      duration_ms: rounded(Math.max(0, endedAt - beganAt)),
    };
  }

  #report({ kind, start_ms, duration_ms }: TraceEntry): void {
    const beganMsAgo = Math.max(0, this.ageMs - start_ms);
    this.#telemetry.work({ kind: "phase", phase: kind, beganMsAgo, lastedMs: duration_ms }).end();
  }
}

type ModelCall = Parameters<NonNullable<ports.TurnContext["modelCalled"]>>[0];

const rounded = (ms: number): number => Math.round(ms * 10) / 10;
const cut = (text: string): string => text.slice(0, TRACE_NAME_CHARACTERS).toWellFormed();
