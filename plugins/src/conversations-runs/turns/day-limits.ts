import type { ports } from "@portico/core";
import type { LimitsByScope } from "../config.ts";
import { BUDGETS } from "../limits.ts";

/** What a limit counts together. */
export type LimitScope = "instance" | "user" | "agent";
/** A limit of a day. */
export type DayLimit = "tokensPerDay" | "moneyPerDay";

/** A limit of a day, and how much of it is used. */
export interface DayBudget {
  readonly scope: LimitScope;
  /** The user or the agent. Absent for the instance. */
  readonly id?: string | undefined;
  readonly limit: DayLimit;
  /** Tokens or money. */
  readonly used: number;
  readonly most: number;
}

/** The limits of the current day. */
export interface DayBudgets {
  /** When the day ends, in milliseconds since 1970. */
  readonly endsAt: number;
  /** The currency of limits of money. Undefined without prices. */
  readonly currency: string | undefined;
  /** Those of which the largest part is used first. */
  readonly budgets: readonly DayBudget[];
  /** How many are left out. */
  readonly omitted: number;
}

const LIMITS: readonly DayLimit[] = ["tokensPerDay", "moneyPerDay"];

type Used = Readonly<Record<DayLimit, number>>;
const UNUSED: Used = { tokensPerDay: 0, moneyPerDay: 0 };

/** What the calls of a day that have these values used. */
export function usedToday(
  groups: ports.UsageDay["groups"],
  where: Pick<Partial<ports.UsageSubject>, "userId" | "agentId">,
): Used {
  let [tokens, money] = [0, 0];
  for (const { subject, sums } of groups) {
    if ("userId" in where && subject.userId !== where.userId) continue;
    if ("agentId" in where && subject.agentId !== where.agentId) continue;
    tokens += sums.inputTokens + sums.outputTokens;
    money += sums.cost;
  }
  return { tokensPerDay: tokens, moneyPerDay: money };
}

/** The same for each value of a field. */
function usedBy(groups: ports.UsageDay["groups"], field: "userId" | "agentId"): ReadonlyMap<string, Used> {
  const found = new Map<string, Used>();
  for (const { subject, sums } of groups) {
    const id = subject[field];
    if (id === undefined) continue;
    const { tokensPerDay: tokens, moneyPerDay: money } = found.get(id) ?? UNUSED;
    found.set(id, { tokensPerDay: tokens + sums.inputTokens + sums.outputTokens, moneyPerDay: money + sums.cost });
  }
  return found;
}

/** The smaller of two limits counts: the file of an agent cannot exceed the settings. */
export function narrowed(one: ports.AgentLimits, other: ports.AgentLimits): ports.AgentLimits {
  const names = ["tokensPerDay", "moneyPerDay", "turnsAtOnce", "turnSeconds"] as const;
  const smaller = names.flatMap((name) => {
    const values = [one[name], other[name]].filter((value) => value !== undefined);
    return values.length === 0 ? [] : [[name, Math.min(...values)]];
  });
  return Object.fromEntries(smaller) as ports.AgentLimits;
}

/**
 * The limits of the current day with what is used of them. `userId`: only those of this user. Otherwise those of the instance, of the users who used
 * something today, and of all agents.
 */
export async function readDayBudgets(
  {
    usage,
    agents,
    limits,
  }: {
    readonly usage: ports.Usage;
    readonly agents: { list(): Promise<readonly Pick<ports.Agent, "id" | "definition">[]> };
    readonly limits: LimitsByScope;
  },
  userId?: string,
): Promise<DayBudgets> {
  const { groups, until, currency } = await usage.today();
  const budgetsOf = (scope: LimitScope, id: string | undefined, used: Used = UNUSED, own: ports.AgentLimits = {}) =>
    LIMITS.filter((limit) => own[limit] !== undefined).map((limit): DayBudget => {
      return { scope, ...(id !== undefined && { id }), limit, used: used[limit], most: own[limit]! };
    });
  const all = userId === undefined ? await ofInstance() : budgetsOf("user", userId, usedToday(groups, { userId }), limits.user);
  const sorted = all.toSorted((one, other) => partOf(other) - partOf(one));
  return { endsAt: until, currency, budgets: sorted.slice(0, BUDGETS), omitted: Math.max(0, sorted.length - BUDGETS) };

  async function ofInstance(): Promise<readonly DayBudget[]> {
    // Once for all users and agents: a day has many calls of many users.
    const [users, ofAgents] = [usedBy(groups, "userId"), usedBy(groups, "agentId")];
    return [
      ...budgetsOf("instance", undefined, usedToday(groups, {}), limits.instance),
      ...[...users].flatMap(([id, used]) => budgetsOf("user", id, used, limits.user)),
      ...(await agents.list()).flatMap(({ id, definition }) =>
        budgetsOf("agent", id, ofAgents.get(id), narrowed(limits.agent ?? {}, definition.limits ?? {})),
      ),
    ];
  }
}

/** A limit of 0 is used up. */
function partOf({ used, most }: DayBudget): number {
  return most === 0 ? 1 : used / most;
}
