import { redisBus } from "@portico/cluster/bus/redis";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { systemClock } from "@portico/adapters/clock/system";
import { bullmqEngine, type BullmqEngineOptions } from "@portico/cluster/engine/bullmq";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { ioredisServer } from "@portico/cluster/redis/ioredis";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { createMemoryTelemetry, type MemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { Secret } from "@portico/core";
import type { EngineUnderTest } from "../conformance/engine-subject.ts";
import { openTcpLine, type TcpLine } from "./tcp-line.ts";

/** The stores that the processes of one test share. */
export interface ClusterPlace {
  readonly postgresUrl: string;
  readonly schema: string;
  readonly redisUrl: string;
  readonly prefix: string;
}

/** One process with `engine/bullmq`, and its own lines to both servers. */
export interface ClusterProcess extends EngineUnderTest {
  readonly place: ClusterPlace;
  readonly postgres: TcpLine;
  readonly redis: TcpLine;
  readonly telemetry: MemoryTelemetry;
}

/** Processes with `engine/bullmq` in this process of Node's. `close` closes their lines. */
export function createEngineCluster(): {
  open(place: ClusterPlace, options?: BullmqEngineOptions & { readonly realTime?: boolean }): Promise<ClusterProcess>;
  close(): Promise<void>;
} {
  const lines: TcpLine[] = [];
  const lineTo = async (url: string, port: number): Promise<readonly [string, TcpLine]> => {
    const far = new URL(url);
    const line = await openTcpLine(Number(far.port || port));
    lines.push(line);
    [far.hostname, far.port] = ["127.0.0.1", String(line.port)];
    return [far.href, line];
  };
  return {
    async open(place, { realTime = false, ...options } = {}) {
      const [postgresUrl, postgres] = await lineTo(place.postgresUrl, 5432);
      const [redisUrl, redis] = await lineTo(place.redisUrl, 6379);
      const clock = createManualClock();
      const telemetry = createMemoryTelemetry();
      return {
        adapters: [
          bullmqEngine(options),
          postgresRecords({ url: postgresUrl, schema: place.schema }),
          ioredisServer({ url: redisUrl, prefix: place.prefix }),
          redisBus(),
          hmacSigning({ key: new Secret("a key for tests") }),
          realTime ? systemClock() : manualClock({ clock }),
          memoryTelemetry({ telemetry }),
        ],
        pass: clock.advance,
        outage: { begin: () => postgres.cut(), end: () => postgres.heal() },
        ...{ place, postgres, redis, telemetry },
      };
    },
    async close() {
      await Promise.all(lines.splice(0).map((line) => line[Symbol.asyncDispose]()));
    },
  };
}
