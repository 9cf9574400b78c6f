import { type ports, ServiceError } from "@portico/core";
import type { LimitsByScope } from "../config.ts";
import { agentErrors } from "../errors.ts";
import { ADMITTED_COUNTED_MS } from "../limits.ts";
import { type DayBudgets, type DayLimit, type LimitScope, narrowed, readDayBudgets, usedToday } from "./day-limits.ts";
import type { OpenTurns } from "./open-turns.ts";
import type { PlayedTurn } from "./turn.ts";
import { type StopReason, TurnStopped } from "./turn-failed.ts";

/** The limits of one scope. */
export type Limits = ports.AgentLimits;

type Who = Pick<PlayedTurn, "userId" | "agentId" | "turnId">;

/** A limit that is reached. */
interface Reached {
  readonly limit: DayLimit | "turnsAtOnce";
  readonly scope: LimitScope;
  /** When it ends, in milliseconds since 1970. Undefined if that depends on other turns. */
  readonly endsAt?: number | undefined;
}

/** A turn under its limits. */
export interface LimitedTurn {
  /** Aborts with TurnStopped when the turn has reached a limit. */
  readonly signal: AbortSignal;
  /** The limits of its agent are known. The time of the turn begins. */
  begin(agent: Limits | undefined): void;
  /** Call it before each step. Throws TurnStopped, and aborts the signal, if a limit is reached. */
  check(): Promise<void>;
  /** The turn has ended. */
  leave(): void;
}

export type TurnLimits = ReturnType<typeof createTurnLimits>;

/**
 * Holds the turns of users and agents to their limits. Days are those of the port `usage`: without it, limits of a day have no effect.
 * `turnsAtOnce` counts the turns of all processes, as this one knows them. Calls with a safe token are counted and never limited
 * (specification 2.1).
 */
export function createTurnLimits(given: {
  readonly usage: ports.Usage | undefined;
  readonly agents: ports.Agents;
  readonly clock: ports.Clock;
  readonly openTurns: OpenTurns;
  readonly limits: LimitsByScope;
}) {
  const { usage, agents, clock, openTurns, limits } = given;

  const scopesOf = (
    who: Who,
    agent: Limits | undefined,
  ): readonly (readonly [LimitScope, Partial<ports.UsageSubject>, Limits])[] => {
    const { userId, agentId } = who;
    return [
      ["instance", {}, limits.instance ?? {}],
      ...(userId === undefined ? [] : [["user", { userId }, limits.user ?? {}] as const]),
      ["agent", { agentId }, narrowed(limits.agent ?? {}, agent ?? {})],
    ];
  };

  /** The first limit of a day that is reached. */
  const reachedToday = async (scopes: ReturnType<typeof scopesOf>): Promise<Reached | undefined> => {
    const isDaily = ([, , { tokensPerDay, moneyPerDay }]: (typeof scopes)[number]) =>
      tokensPerDay !== undefined || moneyPerDay !== undefined;
    if (!usage || !scopes.some(isDaily)) return undefined;
    const { groups, until } = await usage.today();
    for (const [scope, where, { tokensPerDay = Infinity, moneyPerDay = Infinity }] of scopes) {
      const used = usedToday(groups, where);
      if (used.tokensPerDay >= tokensPerDay) return { limit: "tokensPerDay", scope, endsAt: until };
      if (used.moneyPerDay >= moneyPerDay) return { limit: "moneyPerDay", scope, endsAt: until };
    }
    return undefined;
  };

  const reachedAtOnce = (who: Who, scopes: ReturnType<typeof scopesOf>): Reached | undefined => {
    if (!hasTurnsAtOnce(scopes)) return undefined;
    const turns = openTurns.all();
    for (const [scope, where, { turnsAtOnce }] of scopes) {
      if (turnsAtOnce === undefined) continue;
      const isOf = (each: Who) =>
        each.turnId !== who.turnId &&
        (!("userId" in where) || each.userId === where.userId) &&
        (!("agentId" in where) || each.agentId === where.agentId);
      if (turns.filter(isOf).length >= turnsAtOnce) return { limit: "turnsAtOnce", scope };
    }
    return undefined;
  };

  return {
    /** Admits a new query. Throws 429 `limit_reached`. */
    async admit(who: Who): Promise<void> {
      const scopes = scopesOf(who, (await agents.find(who.agentId))?.definition.limits);
      const today = await reachedToday(scopes);
      // No wait between this look and the entry, so that two queries cannot take the last place.
      const reached = today ?? reachedAtOnce(who, scopes);
      if (reached) throw refusal(reached, clock.now());
      if (!hasTurnsAtOnce(scopes)) return;
      openTurns.open(who, clock.now() + ADMITTED_COUNTED_MS);
    },

    /** How much of the limits of the day is used: those of a user, or all of them. Undefined without the port `usage`. */
    today: async (userId?: string): Promise<DayBudgets | undefined> => usage && readDayBudgets({ usage, agents, limits }, userId),

    /** An admitted turn was not stored. */
    withdraw: (turnId: string): void => openTurns.close(turnId),

    /** A turn begins to execute, or goes on after it has executed for some time. Close it with `leave`. */
    enter({ userId, agentId, turnId }: Who, executedMs = 0): LimitedTurn {
      const stopping = new AbortController();
      const stop = (reason: StopReason) => stopping.abort(new TurnStopped(reason));
      let scopes: ReturnType<typeof scopesOf> = [];
      let timer: ports.Timer | undefined;
      openTurns.open({ userId, agentId, turnId });
      return {
        signal: stopping.signal,
        begin(agent) {
          scopes = scopesOf({ userId, agentId, turnId }, agent);
          const seconds = Math.min(...scopes.map(([, , { turnSeconds = Infinity }]) => turnSeconds));
          if (Number.isFinite(seconds)) timer = clock.after(Math.max(0, seconds * 1000 - executedMs), () => stop("time_limit"));
        },
        async check() {
          if (await reachedToday(scopes)) stop("limit_reached");
          stopping.signal.throwIfAborted();
        },
        leave() {
          timer?.cancel();
          openTurns.close(turnId);
        },
      };
    },
  };
}

const hasTurnsAtOnce = (scopes: readonly (readonly [unknown, unknown, Limits])[]): boolean =>
  scopes.some(([, , { turnsAtOnce }]) => turnsAtOnce !== undefined);

/** How long a caller waits if the end of a limit depends on other turns. */
const RETRY_SECONDS = 5;

function refusal({ limit, scope, endsAt }: Reached, now: number): ServiceError {
  const seconds = endsAt === undefined ? RETRY_SECONDS : Math.max(1, Math.ceil((endsAt - now) / 1000));
  return new ServiceError(agentErrors.limit_reached, {
    details: { limit, scope, ...(endsAt !== undefined && { endsAt: new Date(endsAt).toISOString() }) },
    headers: { "retry-after": String(seconds) },
  });
}
