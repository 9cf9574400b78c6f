import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { io } from "socket.io-client";
import { type AgentService, type Heard, startBody, TOKENS, withDigest } from "./agent-app.ts";
import { openBrokenLine } from "./broken-line.ts";
import { told } from "./socket-host.ts";

/** The results of the queries of clients whose connections were cut. */
export interface CutOutcome {
  /** Connections that clients lost. */
  readonly cuts: number;
  readonly queries: number;
  readonly events: number;
  /** Descriptions of events that a client never received. */
  readonly lost: readonly string[];
  /** Descriptions of events that a client received more than once. */
  readonly doubled: readonly string[];
  /** Descriptions of events that a client received before an earlier one. */
  readonly disordered: readonly string[];
  /** How often a client was told that it had missed something. */
  readonly unrecovered: number;
}

export interface CutPlan {
  readonly transports: readonly ("polling" | "websocket")[];
  /** Cuts, over all clients. */
  readonly cuts: number;
  readonly clients: number;
  /** After this silence at the end, events that a client has not received count as lost. */
  readonly patienceMs: number;
}

/** The lengths of the turns in messages: a cut affects the middle of a turn, its end, or all of it. */
const LENGTHS = [0, 1, 60, 2, 25];
/** Queries of one client whose ends it has not heard. */
const MOST_AT_ONCE = 20;

/**
 * Stock Socket.IO clients submit queries while their connections are cut repeatedly. The service's agents play the queries with `sayMany`.
 * Queries are submitted beside the cut connections, two at a time, and accepted.
 */
export async function cutAgainAndAgain(service: AgentService, plan: CutPlan): Promise<CutOutcome> {
  const cutsOfEach = Math.ceil(plan.cuts / plan.clients);
  const outcomes = await Promise.all(
    Array.from({ length: plan.clients }, () => cutClient(service, { ...plan, cuts: cutsOfEach })),
  );
  const sum = (count: (outcome: CutOutcome) => number) => outcomes.reduce((total, each) => total + count(each), 0);
  return {
    cuts: sum(({ cuts }) => cuts),
    queries: sum(({ queries }) => queries),
    events: sum(({ events }) => events),
    lost: outcomes.flatMap(({ lost }) => lost),
    doubled: outcomes.flatMap(({ doubled }) => doubled),
    disordered: outcomes.flatMap(({ disordered }) => disordered),
    unrecovered: sum(({ unrecovered }) => unrecovered),
  };
}

/** From now on the service's agents say as many messages as their prompt names, some at once and some a little later. */
export function sayMany(service: AgentService): void {
  service.engine.otherwise(async ({ input }, { say }) => {
    const count = Number(
      input
        .flatMap((part) => (part.type === "text" ? part.text : []))
        .join("")
        .split(" ")[0],
    );
    for (let at = 1; at <= count; at++) {
      await say({ type: "text", delta: `${at} ` });
      if (at % 3 === 0) await sleep(1);
    }
  });
}

async function cutClient(service: AgentService, plan: CutPlan): Promise<CutOutcome> {
  await using line = await openBrokenLine(service.url);
  const socket = io(line.url, {
    auth: { token: TOKENS.owner, clientInstanceId: `stock-${randomUUID()}` },
    transports: [...plan.transports],
    forceNew: true,
    reconnectionDelay: 2,
    reconnectionDelayMax: 10,
    // Its long polling does not notice an answer that was cut in the middle.
    timeout: 1_000,
  });
  const heard: Heard[] = [];
  let cuts = 0;
  let unrecovered = -1;
  socket.onAny((event: string, data: unknown) => heard.push({ event, data }));
  socket.on("disconnect", () => cuts++);
  socket.on("connect", () => socket.recovered || unrecovered++);
  const asked = new Map<string, number>();
  const submit = async (length: number) => {
    const { originSocketId: _, requestDigest: __, ...sent } = startBody({ id: "" }, `${length} messages`);
    for (;;) {
      const body = withDigest({ ...sent, originSocketId: socket.id ?? "none" });
      const { status } = await service.call("owner", "POST", "/api/query/start", body);
      if (status === 202) break;
      // The connection was just cut: its successor submits.
      await sleep(2);
    }
    asked.set(sent.clientRequestId, length);
  };
  const isEnded = (request: string) =>
    heard.some(({ event, data }) => data.clientRequestId === request && (event === "query:complete" || event === "query:error"));
  const isOver = () => cuts >= plan.cuts;
  const submitting = Promise.all(
    [0, 1].map(async (offset) => {
      for (let at = offset; !isOver(); at++) {
        if ([...asked.keys()].filter((request) => !isEnded(request)).length < MOST_AT_ONCE)
          await submit(LENGTHS[at % LENGTHS.length]!);
        else await sleep(5);
      }
    }),
  );
  const cutting = (async () => {
    while (!isOver()) {
      if (!socket.connected) await told(socket, "connect");
      await sleep(Math.random() * 25);
      line.cut();
      // Sometimes the next connection is also cut before it is established.
      if (Math.random() < 0.2) await sleep(Math.random() * 10).then(() => line.cut());
    }
  })();
  await Promise.all([submitting, cutting]);
  // As long as anything comes, more may come.
  const areEnded = () => [...asked.keys()].every(isEnded);
  for (let count = heard.length, since = Date.now(); !areEnded() && Date.now() - since < plan.patienceMs; await sleep(50)) {
    if (heard.length > count) since = Date.now();
    count = heard.length;
  }
  socket.disconnect();
  return { cuts, queries: asked.size, events: heard.length, unrecovered, ...judge(asked, heard) };
}

function judge(asked: ReadonlyMap<string, number>, heard: readonly Heard[]): Pick<CutOutcome, "lost" | "doubled" | "disordered"> {
  const lost: string[] = [];
  const doubled: string[] = [];
  const disordered: string[] = [];
  for (const [request, length] of asked) {
    const wanted = ["query:started", ...Array.from({ length }, (_, at) => `message ${at + 1}`), "query:complete"];
    const found = heard.filter(({ data }) => data.clientRequestId === request).map(nameOf);
    for (const name of wanted) {
      const count = found.filter((each) => each === name).length;
      if (count === 0) lost.push(`${name} of ${wanted.length} of ${request}`);
      if (count > 1) doubled.push(`${name} of ${wanted.length} of ${request}`);
    }
    const first = found.filter((name, at) => found.indexOf(name) === at);
    if (first.some((name, at) => at > 0 && wanted.indexOf(name) < wanted.indexOf(first[at - 1]!))) disordered.push(request);
  }
  return { lost, doubled, disordered };
}

function nameOf({ event, data }: Heard): string {
  return event === "query:message" ? `message ${data.message.seq}` : event;
}
