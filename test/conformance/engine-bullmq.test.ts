import { redisBus } from "@portico/adapters/bus/redis";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { bullmqEngine } from "@portico/adapters/engine/bullmq";
import { postgresRecords } from "@portico/adapters/records/postgres";
import { ioredisServer } from "@portico/adapters/redis/ioredis";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { afterAll } from "vitest";
import { postgresDatabase } from "../harness/postgres.ts";
import { redisPlace } from "../harness/redis.ts";
import { openTcpLine, type TcpLine } from "../harness/tcp-line.ts";
import { engineConformance } from "./engine.ts";
import type { EngineUnderTest } from "./engine-subject.ts";

const PARK_AFTER_MS = 1000;

const database = await postgresDatabase();
const place = await redisPlace();
afterAll(() => database?.drop());

if (database && place) {
  let stores = 0;
  /** What another process needs to meet the same store, and the line whose cut is this process's death. */
  const made = new WeakMap<EngineUnderTest, { readonly schema: string; readonly prefix: string; readonly line: TcpLine }>();
  const lines: TcpLine[] = [];
  afterAll(() => Promise.all(lines.map((line) => line[Symbol.asyncDispose]())));
  const open = async (schema: string, prefix: string): Promise<EngineUnderTest> => {
    const clock = createManualClock();
    const line = await openTcpLine(Number(new URL(database.url).port || 5432));
    lines.push(line);
    const url = new URL(database.url);
    [url.hostname, url.port] = ["127.0.0.1", String(line.port)];
    const under: EngineUnderTest = {
      adapters: [
        bullmqEngine({ parkAfterMs: PARK_AFTER_MS }),
        postgresRecords({ url: url.href, schema }),
        ioredisServer({ url: place().url, prefix }),
        redisBus(),
        manualClock({ clock }),
        memoryTelemetry({}),
      ],
      pass: clock.advance,
      outage: { begin: () => line.cut(), end: () => line.heal() },
    };
    made.set(under, { schema, prefix, line });
    return under;
  };
  const make = () => open(`s${++stores}`, place().prefix);
  const durable = {
    /** A process without a connection to the database is dead for all others. */
    again(first: EngineUnderTest) {
      const { schema, prefix, line } = made.get(first)!;
      line.cut();
      return open(schema, prefix);
    },
  };
  engineConformance("bullmq, with a journal in PostgreSQL", make, {
    durable,
    parkAfterMs: PARK_AFTER_MS,
    outages: true,
    backlog: 140,
  });
}
