import { Redis } from "ioredis";
import { MEMBER_SERVERS } from "../../harness/member-place.ts";
import { postgresDatabase } from "../../harness/postgres.ts";
import { redisPlace } from "../../harness/redis.ts";

/** Makes the database of all clusters of a run of the suites. Answers what removes it, and the keys in Redis. */
export default async function setUp(): Promise<(() => Promise<void>) | undefined> {
  const redis = await redisPlace();
  const database = redis && (await postgresDatabase());
  if (!redis || !database) {
    console.warn("The suites are not run on a cluster: PostgreSQL or Redis does not answer");
    return undefined;
  }
  // A run has nothing that must survive a crash of the server.
  await database.query(
    `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`,
  );
  const { url, prefix } = redis();
  process.env[MEMBER_SERVERS.postgresUrl] = database.url;
  process.env[MEMBER_SERVERS.redisUrl] = url;
  process.env[MEMBER_SERVERS.redisPrefix] = prefix;
  return async () => {
    await removeKeys(url, `${prefix}-*`);
    await database.drop();
  };
}

async function removeKeys(url: string, pattern: string): Promise<void> {
  const client = new Redis(url);
  for await (const keys of client.scanStream({ match: pattern, count: 1000 })) {
    if (keys.length > 0) await client.unlink(...(keys as string[]));
  }
  client.disconnect();
}
