import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { Client } from "pg";
import type { RedisPlace } from "./redis.ts";

/** The shared parts of the members of one cluster of a test. */
export interface MemberPlace {
  readonly postgresUrl: string;
  readonly schema: string;
  readonly redis: RedisPlace;
  /** How many living members there are. */
  members: number;
  /** Ends the living members, as `SIGKILL` does. */
  kill(): void;
}

/** Environment variables in which `suites-setup.ts` gives the servers to the processes that run tests. */
export const MEMBER_SERVERS = {
  postgresUrl: "PORTICO_TEST_MEMBERS_POSTGRES",
  redisUrl: "PORTICO_TEST_MEMBERS_REDIS",
  redisPrefix: "PORTICO_TEST_MEMBERS_PREFIX",
} as const;

/** By data directory. */
const places = new Map<string, MemberPlace>();
/** Schemas whose tables have no rows. Reuse takes a quarter of the time that new tables take. */
const emptySchemas: string[] = [];

/**
 * The stores of a cluster whose services would have this data directory on one machine. Services of one directory share them, as long
 * as the directory exists or a member lives.
 */
export async function memberPlaceOf(dataDir: string): Promise<MemberPlace> {
  const known = places.get(dataDir);
  if (known) return known;
  const place: MemberPlace = {
    postgresUrl: setting(MEMBER_SERVERS.postgresUrl),
    schema: emptySchemas.pop() ?? (await abandonedSchema()) ?? `members_${randomBytes(6).toString("hex")}`,
    redis: {
      url: setting(MEMBER_SERVERS.redisUrl),
      prefix: `${setting(MEMBER_SERVERS.redisPrefix)}-${randomBytes(6).toString("hex")}`,
    },
    members: 0,
    kill() {},
  };
  places.set(dataDir, place);
  return place;
}

/** Empties the schemas of directories that were removed. */
async function abandonedSchema(): Promise<string | undefined> {
  for (const [dataDir, place] of places) {
    if (place.members > 0 || existsSync(dataDir)) continue;
    places.delete(dataDir);
    await empty(place);
    emptySchemas.push(place.schema);
  }
  return emptySchemas.pop();
}

/** Deletes all rows but those that belong to the tables: their formats, and the row of the sweep. */
async function empty({ postgresUrl, schema }: MemberPlace): Promise<void> {
  const client = new Client({ connectionString: postgresUrl });
  await client.connect();
  try {
    await client.query(`DO $$ DECLARE name text; BEGIN
      FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '${schema}'
        AND tablename NOT IN ('_store', '_log_format', '_engine_format', '_engine_sweep')
      LOOP EXECUTE format('DELETE FROM %I.%I', '${schema}', name); END LOOP;
    END $$`);
  } finally {
    await client.end();
  }
}

function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is missing: run the suites on a cluster with npm run test:cluster`);
  return value;
}
