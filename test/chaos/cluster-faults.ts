import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { PostgresServer } from "../harness/postgres-server.ts";
import type { OwnRedis } from "../harness/redis.ts";
import { openTcpLine, type TcpLine } from "../harness/tcp-line.ts";
import type { Answer, Request, WorkPlace } from "./cluster-work.ts";

/** A fault that is repaired after some time. Processes are counted from 0. */
export type Fault =
  | { readonly is: "kill"; readonly process: number }
  | { readonly is: "freeze"; readonly process: number; readonly ms: number }
  | {
      readonly is: "line";
      readonly process: number;
      readonly to: "postgres" | "redis";
      readonly how: "cut" | "hold" | "reset" | "forget";
      readonly ms: number;
    }
  | { readonly is: "redis wiped" }
  | { readonly is: "redis emptied"; readonly ms: number }
  | { readonly is: "redis frozen"; readonly ms: number }
  | { readonly is: "postgres restarted"; readonly mode: "fast" | "immediate"; readonly ms: number };

/** The stores of one run. */
export interface RunPlace extends Pick<WorkPlace, "schema" | "prefix" | "leaseMs" | "happened"> {
  readonly postgres: PostgresServer;
  readonly redis: OwnRedis;
}

/** The result of a request: its answer, or undefined if its process died before the answer. */
export type Outcome = Answer | undefined;

interface Slot {
  life: string;
  child: ChildProcess;
  ready: Promise<void>;
  /** Requests that are not answered yet. */
  readonly asked: Map<number, (outcome: Outcome) => void>;
  readonly postgres: TcpLine;
  readonly redis: TcpLine;
  isReady: boolean;
  /** Set while a fault ends the process. */
  isDying: boolean;
}

/** Processes that share works, each with its own connections to both servers, and the faults that they suffer. */
export interface FaultyCluster extends AsyncDisposable {
  /**
   * Lives of processes that were killed, were frozen, or had no connection to PostgreSQL. Other processes may have received their works.
   */
  readonly disturbed: ReadonlySet<string>;
  /** Deaths that no fault explains. */
  readonly deaths: readonly string[];
  /** Asks a process, or the next process that is ready. */
  ask(process: number, request: Request): Promise<Outcome>;
  /** Begin a fault. Faults of one server or process follow each other. */
  begin(fault: Fault): void;
  /** Resolves when all faults are repaired and all processes are ready. */
  calm(): Promise<void>;
  /** Closes the engines. Resolves with the exit code of each process when all processes have ended by themselves. */
  close(): Promise<readonly (number | null)[]>;
}

const SCRIPT = join(import.meta.dirname, "processes/work-in-cluster.ts");

/** Start `count` processes. */
export async function openFaultyCluster(count: number, place: RunPlace): Promise<FaultyCluster> {
  const { postgres, redis, schema, prefix, leaseMs, happened } = place;
  const disturbed = new Set<string>();
  const deaths: string[] = [];
  const mending = new Map<string, Promise<void>>();
  let calls = 0;
  let lives = 0;
  let isClosing = false;

  const launch = (slot: Slot): void => {
    slot.life = `${++lives}`;
    slot.isReady = slot.isDying = false;
    const toLine = (url: string, { port }: TcpLine): string => Object.assign(new URL(url), { port: `${port}` }).href;
    const given: WorkPlace = {
      ...{ life: slot.life, schema, prefix, leaseMs, happened },
      postgresUrl: toLine(postgres.url, slot.postgres),
      redisUrl: toLine(redis.url, slot.redis),
    };
    const child = fork(SCRIPT, [JSON.stringify(given)], { stdio: ["ignore", "ignore", "pipe", "ipc"] });
    let written = "";
    child.stderr!.setEncoding("utf8").on("data", (text: string) => (written += text));
    const ready = Promise.withResolvers<void>();
    Object.assign(slot, { child, ready: ready.promise });
    child.on("message", (message: "ready" | ({ call: number } & Answer)) => {
      if (message === "ready") {
        slot.isReady = true;
        return ready.resolve();
      }
      slot.asked.get(message.call)?.(message);
      slot.asked.delete(message.call);
    });
    child.once("close", (code, signal) => {
      for (const answer of slot.asked.values()) answer(undefined);
      slot.asked.clear();
      if (isClosing) return ready.resolve();
      // A process that finds no server at its start ends. It is started again, as a supervisor does.
      if (slot.isReady && !slot.isDying) deaths.push(`life ${given.life}: ${code ?? signal} ${written}`);
      const again = (): void => {
        if (isClosing) return ready.resolve();
        launch(slot);
        void slot.ready.then(ready.resolve);
      };
      if (slot.isReady) again();
      else setTimeout(again, 100);
    });
  };

  const slots = await Promise.all(
    Array.from({ length: count }, async (): Promise<Slot> => {
      const [toPostgres, toRedis] = [await openTcpLine(postgres.port), await openTcpLine(redis.port)];
      const slot = { asked: new Map(), postgres: toPostgres, redis: toRedis } as unknown as Slot;
      launch(slot);
      return slot;
    }),
  );

  const send = (slot: Slot, request: Request): Promise<Outcome> =>
    new Promise((resolve) => {
      const call = ++calls;
      slot.asked.set(call, resolve);
      slot.child.send({ call, request }, (error) => {
        if (!error) return;
        slot.asked.delete(call);
        resolve(undefined);
      });
    });

  const befall = async (fault: Fault): Promise<void> => {
    const slot = "process" in fault ? slots[fault.process]! : undefined;
    await slot?.ready;
    if (slot && !(fault.is === "line" && fault.to === "redis")) disturbed.add(slot.life);
    if (fault.is === "kill") {
      slot!.isDying = true;
      slot!.child.kill("SIGKILL");
      await once(slot!.child, "close");
      await slot!.ready;
    } else if (fault.is === "freeze") {
      slot!.child.kill("SIGSTOP");
      await wait(fault.ms);
      slot!.child.kill("SIGCONT");
    } else if (fault.is === "line") {
      slot![fault.to][fault.how]();
      await wait(fault.ms);
      slot![fault.to].heal();
    } else if (fault.is === "redis wiped") {
      await redis.ask("FLUSHALL");
    } else if (fault.is === "redis emptied") {
      await redis.kill();
      await wait(fault.ms);
      await redis.start();
    } else if (fault.is === "redis frozen") {
      redis.freeze();
      await wait(fault.ms);
      redis.thaw();
    } else {
      await postgres.stop(fault.mode);
      await wait(fault.ms);
      await postgres.start();
    }
  };

  return {
    disturbed,
    deaths,
    async ask(process, request) {
      const some = slots.map((_, at) => slots[(process + at) % count]!);
      await Promise.race(some.map(({ ready }) => ready));
      const slot = some.find(({ isReady, isDying }) => isReady && !isDying);
      return slot && send(slot, request);
    },
    begin(fault) {
      const of = "process" in fault ? `process ${fault.process}` : fault.is.split(" ")[0]!;
      mending.set(
        of,
        (mending.get(of) ?? Promise.resolve()).then(() => befall(fault)),
      );
    },
    async calm() {
      await Promise.all(mending.values());
      await Promise.all(slots.map(({ ready }) => ready));
    },
    close() {
      isClosing = true;
      return Promise.all(
        slots.map(async (slot) => {
          const ended = once(slot.child, "close");
          await send(slot, { is: "close" });
          return ((await ended) as [number | null])[0];
        }),
      );
    },
    async [Symbol.asyncDispose]() {
      isClosing = true;
      for (const { child } of slots) child.kill("SIGKILL");
      await Promise.all(slots.map(({ child }) => child.exitCode ?? child.signalCode ?? once(child, "close")));
      await Promise.all(slots.flatMap((slot) => [slot.postgres, slot.redis]).map((line) => line[Symbol.asyncDispose]()));
    },
  };
}
