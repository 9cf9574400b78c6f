import type { ports } from "@portico/core";
import { type Happening, type KindName, KINDS, type Script, type Told } from "./cluster-work.ts";

/** A request that was answered, or whose answer was lost. Times count the requests and answers of the test, in order. */
interface Asked {
  readonly sent: number;
  /** Undefined if it is not known whether it took effect. */
  readonly answered: number | undefined;
}

/** A started work, and the requests about it. */
export interface StartedWork extends Asked {
  readonly kind: KindName;
  readonly id: string;
  readonly key: string;
  readonly script: Script;
  /** Signals that may have been accepted. */
  readonly signals: (Asked & { readonly name: string; readonly payload: number })[];
  /** For each cancellation, whether it was accepted. Undefined if that is not known. */
  readonly cancels: (boolean | undefined)[];
}

/** A work at the end of a run. */
export interface EndedWork extends StartedWork {
  readonly status: ports.WorkStatus;
  /** The journal's number. */
  readonly number: number;
  /** The last execution that wrote a batch with the condition `held`. */
  readonly heldBy: string | undefined;
}

/** The result of a run. */
export interface EndedRun {
  readonly works: readonly EndedWork[];
  readonly happenings: readonly Happening[];
  /** Lives of processes that other processes may have considered dead. */
  readonly disturbed: ReadonlySet<string>;
}

/** Every breach of the engine's rules. */
export function breaches({ works, happenings, disturbed: known }: EndedRun): readonly string[] {
  // A process may also lose its lease because the machine is busy.
  const disturbed = new Set([...known, ...happenings.flatMap(({ is, life }) => (is === "lost" ? [life] : []))]);
  const found: string[] = happenings.flatMap((each) => (each.is === "error" ? [`life ${each.life}: ${each.message}`] : []));
  const ofWork = Map.groupBy(happenings, (each) => ("id" in each ? each.id : ""));
  for (const work of works) {
    const own = ofWork.get(work.id) ?? [];
    found.push(...[...endBreaches(work, own, disturbed), ...effectBreaches(work, own, disturbed), ...signalBreaches(work)]);
  }
  for (const some of Map.groupBy(works, ({ kind, key }) => `${kind} ${key}`).values()) found.push(...keyBreaches(some, ofWork));
  return [...found, ...choreBreaches(happenings, disturbed)];
}

/** Each work ends once, as its kind defines. */
function endBreaches(work: EndedWork, own: readonly Happening[], disturbed: ReadonlySet<string>): readonly string[] {
  const { id, kind, status, cancels, script, heldBy } = work;
  const closes = KINDS[kind].onInterrupted === "close";
  const found: string[] = [];
  const { state } = status;
  if (cancels.includes(true) && state !== "cancelled") found.push(`${id} was cancelled, and is ${state}`);
  if (cancels.every((each) => each === false) && state === "cancelled") found.push(`${id} was not cancelled, and is`);
  if (!["completed", "cancelled", ...(closes ? ["interrupted"] : [])].includes(state))
    found.push(`${id} is ${state}: ${status.error}`);
  const tellers = own.flatMap(({ is, life }) => (is === "closed" ? [life] : []));
  if (state === "interrupted" && tellers.length === 0) found.push(`${id} is interrupted, and that was not told`);
  if (tellers.length > 0 && (!closes || state === "completed")) found.push(`${id} was told as closed, and is ${state}`);
  if (tellers.slice(0, -1).some((life) => !disturbed.has(life))) found.push(`${id} was told as closed twice`);
  const began = own.flatMap(({ is, life }) => (is === "began" ? [life] : []));
  if (tellers.length > 0 && began.some((life) => !disturbed.has(life))) found.push(`${id} was closed, and its process lived`);
  if (closes && began.length > 1) found.push(`${id} was executed twice, and its kind is closed`);
  if (state !== "completed") return found;
  const { execution, answers } = status.output as Told;
  if (heldBy !== execution) found.push(`${id} was ended by ${execution}, and written by ${heldBy}`);
  if (answers.length !== script.deeds.length) found.push(`${id} did not do all its deeds`);
  for (const each of own) {
    if (each.is !== "passed" || JSON.stringify(each.answer) === JSON.stringify(answers[each.deed])) continue;
    found.push(`${id} was answered ${each.answer} and ${answers[each.deed]} by deed ${each.deed}`);
  }
  return found;
}

/** A step that may not be repeated runs once, and no two executions run at the same time. */
function effectBreaches(work: EndedWork, own: readonly Happening[], disturbed: ReadonlySet<string>): readonly string[] {
  const { id, script } = work;
  const found: string[] = [];
  for (const [at, deed] of script.deeds.entries()) {
    if (deed.is !== "step" || deed.repeatable) continue;
    const runs = own.filter((each) => each.is === "ran" && each.step === `${at}`);
    if (runs.length > 1) found.push(`${id} ran step ${at} ${runs.length} times`);
  }
  const running = new Map<string, string>();
  for (const each of own) {
    if (each.is === "left") running.delete(each.execution);
    if (each.is !== "began") continue;
    for (const [execution, life] of running)
      if (!disturbed.has(life)) found.push(`${id} ran in ${execution} and ${each.execution}`);
    running.set(each.execution, each.life);
  }
  return found;
}

/** Signals arrive once and in order. No signal is lost. */
function signalBreaches({ id, status, script, signals }: EndedWork): readonly string[] {
  if (status.state !== "completed") return [];
  const { answers } = status.output as Told;
  const found: string[] = [];
  for (const name of new Set(signals.map((each) => each.name))) {
    const got = script.deeds.flatMap((deed, at) =>
      deed.is === "wait" && deed.name === name ? (answers[at] ?? []) : [],
    ) as number[];
    const bySent = new Map(signals.map((each) => [each.payload, each]));
    for (const [at, payload] of got.entries()) {
      const signal = bySent.get(payload);
      if (signal?.name !== name) found.push(`${id} got ${payload}, which was not sent as ${name}`);
      if (got.indexOf(payload) !== at) found.push(`${id} got ${payload} twice`);
      // Every signal that was accepted before this one was sent arrived first.
      const earlier = signals.filter((each) => each.name === name && each.answered !== undefined && each.answered < signal!.sent);
      for (const each of earlier)
        if (!got.slice(0, at).includes(each.payload)) found.push(`${id} got ${payload}, and not ${each.payload} before it`);
    }
  }
  return found;
}

/** Works of one key begin in the order of their acceptance. The number of executing works never exceeds the key's limit. */
function keyBreaches(works: readonly EndedWork[], ofWork: ReadonlyMap<string, readonly Happening[]>): readonly string[] {
  const { concurrencyPerKey: limit } = KINDS[works[0]!.kind];
  const found: string[] = [];
  const inOrder = works.toSorted((a, b) => a.number - b.number);
  for (const [at, work] of inOrder.entries()) {
    for (const later of inOrder.slice(at + 1))
      if (later.answered !== undefined && later.answered < work.sent) found.push(`${later.id} was accepted before ${work.id}`);
    const began = ofWork.get(work.id)?.find(({ is }) => is === "began");
    if (!began) continue;
    const open = inOrder.slice(0, at).filter(({ status }) => status.endedAt! > began.at);
    if (open.length >= limit) found.push(`${work.id} began before ${open.map(({ id }) => id).join()} had ended`);
  }
  return found;
}

/** A chore runs in one process at a time. */
function choreBreaches(happenings: readonly Happening[], disturbed: ReadonlySet<string>): readonly string[] {
  const found: string[] = [];
  const running = new Set<string>();
  for (const { is, life } of happenings) {
    if (is === "chore ended") running.delete(life);
    if (is !== "chore began") continue;
    for (const each of running) if (!disturbed.has(each)) found.push(`The chore ran in lives ${each} and ${life}`);
    running.add(life);
  }
  return found;
}
