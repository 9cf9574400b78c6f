import { inspectPostgres, inspectRedis, ServerAway } from "@portico/cluster/stores/inspect-servers";
import { isMoveUnfinished } from "@portico/cluster/stores/move-store";
import { type App, createApp, findStoreMismatch, pendingUpload, pendingUploads, ports } from "@portico/core";
import { clusterProblems } from "@portico/presets/cluster/problems";
import { clusterStore, postgresOptions, redisOptions } from "@portico/presets/cluster/store";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { BLOB_COLLECTIONS } from "../attachments.ts";
import { UNFINISHED_MOVE } from "../cluster/cluster-app.ts";
import { doubtful, type Finding, fine, wrong } from "./finding.ts";

const LEAST_POSTGRES = 14;
const LEAST_REDIS = 6.2;
/** The key of an object that does not exist. */
const NO_BLOB = "portico-doctor";

/** Checks what the processes of a cluster share: settings, servers and their clocks, the schema, the key, and the place of blobs. */
export async function checkCluster(settings: PlatformSettings): Promise<readonly Finding[]> {
  const problems = clusterProblems(settings);
  if (problems.length > 0) return problems.map((line) => wrong("cluster", line, "docs/cluster.md says what a cluster needs"));
  const servers = await Promise.all([checkPostgres(settings), checkRedis(settings)]);
  const areAllThere = servers.flat().every(({ isWrong }) => !isWrong);
  return [...servers.flat(), ...(areAllThere ? await checkStores(settings) : []), ...checkPrograms(settings)];
}

async function checkPostgres({ cluster }: PlatformSettings): Promise<readonly Finding[]> {
  const about = "PostgreSQL";
  const { poolSize, ...options } = postgresOptions(cluster);
  try {
    const { version, clockAheadMs, maxConnections, connections, isDurable, pooler } = await inspectPostgres(options);
    const found: Finding[] = [];
    if (Number.parseFloat(version) < LEAST_POSTGRES)
      found.push(wrong(about, `it has version ${version}`, `install version ${LEAST_POSTGRES} or later`));
    else found.push(fine(about, `version ${version}, ${connections} of ${maxConnections} connections are open`));
    if (!isDurable)
      found.push(
        wrong(about, "a crash of the server loses accepted work", "switch fsync and synchronous_commit on in its configuration"),
      );
    if (pooler === "loses statements" && options.preparedStatements)
      found.push(
        wrong(
          about,
          "its pooler loses prepared statements",
          "use a pooler that keeps them (PgBouncer 1.21 or later), or set cluster.postgres.preparedStatements to false",
        ),
      );
    if (pooler !== "none" && options.directUrl === undefined)
      found.push(
        wrong(
          about,
          "the connection of the lease goes through a pooler",
          "set cluster.postgres.directUrl to the server's own address",
        ),
      );
    if (pooler === "none" && poolSize + 1 > maxConnections)
      found.push(
        wrong(
          about,
          `each process opens up to ${poolSize + 1} connections, and the server allows ${maxConnections}`,
          "raise max_connections, or lower cluster.postgres.poolSize",
        ),
      );
    return [...found, ...checkClock(about, clockAheadMs, cluster.leaseMs)];
  } catch (error) {
    if (!(error instanceof ports.RecordsUnavailable || error instanceof TypeError)) throw error;
    return [wrong(about, error.message, "start the server, or correct cluster.postgres and cluster.tls")];
  }
}

async function checkRedis({ cluster }: PlatformSettings): Promise<readonly Finding[]> {
  const about = "Redis";
  try {
    const { version, clockAheadMs, evicts } = await inspectRedis(redisOptions(cluster));
    const isOld = Number.parseFloat(version) < LEAST_REDIS;
    const found = isOld
      ? [wrong(about, `it has version ${version}`, `install version ${LEAST_REDIS} or later`)]
      : [fine(about, `version ${version}`)];
    if (evicts !== undefined && evicts !== "noeviction")
      found.push(
        wrong(
          about,
          `it may evict keys (maxmemory-policy ${evicts}): queued work would begin late`,
          "set maxmemory-policy to noeviction",
        ),
      );
    return [...found, ...checkClock(about, clockAheadMs, cluster.leaseMs)];
  } catch (error) {
    if (!(error instanceof ServerAway || error instanceof TypeError)) throw error;
    return [wrong(about, error.message, "start the server, or correct cluster.redis and cluster.tls")];
  }
}

/** Leases go by the database's clock. Delays, schedules and the order of ids go by the clocks of the machines. */
function checkClock(about: string, aheadMs: number, leaseMs: number): readonly Finding[] {
  if (Math.abs(aheadMs) <= leaseMs) return [];
  const words = `its clock is ${Math.abs(Math.round(aheadMs / 1000))} s ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`;
  return [wrong(about, words, "synchronize the clocks of all machines (NTP)")];
}

async function checkStores(settings: PlatformSettings): Promise<readonly Finding[]> {
  const about = "cluster";
  let app: App | undefined;
  try {
    app = await createApp({
      name: "doctor",
      adapters: clusterStore(settings, [ports.records, ports.log, ports.secrets, ports.blobs]),
    });
    if (await isMoveUnfinished(app.port(ports.records))) return [wrong("schema", UNFINISHED_MOVE, "repeat portico move")];
    const stores = [
      fine("schema", `${settings.cluster.postgres.schema} has the format of this version`),
      fine("instance key", "it opens the stored secrets"),
    ];
    return [...stores, ...(await checkBlobs(app))];
  } catch (error) {
    if (error instanceof ports.SecretsUnavailable)
      return [wrong("instance key", error.message, "give every process the same instance.key (PORTICO_INSTANCE_KEY)")];
    const mismatch = findStoreMismatch(error);
    if (mismatch?.name === "StoreForeign") return [wrong("schema", mismatch.message, "correct cluster.postgres")];
    if (mismatch) return [wrong("schema", mismatch.message, "run portico migrate, or the version that made the schema")];
    if (error instanceof ports.BlobsUnavailable)
      return [wrong("blobs", error.message, "correct cluster.blobs, or start that store")];
    if (error instanceof ports.RecordsUnavailable) return [wrong(about, error.message, "correct cluster.postgres")];
    throw error;
  } finally {
    await app?.close();
  }
}

async function checkBlobs(app: App): Promise<readonly Finding[]> {
  const blobs = app.port(ports.blobs);
  try {
    await blobs.stat(NO_BLOB);
    return [fine("blobs", "their store answers"), ...(await checkBlobRecords(app.port(ports.records), blobs))];
  } catch (error) {
    if (!(error instanceof ports.BlobsUnavailable)) throw error;
    return [wrong("blobs", error.message, "correct cluster.blobs, or start that store")];
  }
}

/** Each process would start its own program, and what one keeps in memory the others do not have. */
function checkPrograms({ mcpServers }: PlatformSettings): readonly Finding[] {
  return Object.entries(mcpServers)
    .filter(([, { command }]) => command !== undefined)
    .map(([name]) =>
      doubtful(
        `MCP server ${name}`,
        "each process of the cluster starts its own program; use a server with a url if it keeps state",
      ),
    );
}

/** Files and records that are compared. More would take long, and the first ones show a restored store. */
const COMPARED = 10_000;
const AT_ONCE = 20;
const PAGE = 1000;
const SHOWN = 3;

/**
 * Compares files with their records. They differ after one of the two stores was restored. Files of uploads in progress have a note
 * instead of a record, and are not reported.
 */
async function checkBlobRecords(records: ports.Records, blobs: ports.Blobs): Promise<readonly Finding[]> {
  const unknown: string[] = [];
  const missing: string[] = [];
  const pending = records.collection(pendingUploads);
  for (const name of BLOB_COLLECTIONS) {
    const collection = records.collection({ name });
    const keys = await firstKeys(blobs, name);
    const isUnknown = async (key: string): Promise<boolean> =>
      !(await collection.get(key.slice(name.length + 1))) && !(await pending.get(pendingUpload(key)));
    unknown.push(...(await filter([...keys], isUnknown)));
    const recorded = (await firstIds(collection)).map((id) => `${name}/${id}`).filter((key) => !keys.has(key));
    missing.push(...(await filter(recorded, async (key) => !(await blobs.stat(key)))));
  }
  const findings: Finding[] = [];
  if (unknown.length > 0) {
    const why = "the record was removed, or is newer than a restored database";
    findings.push(doubtful("blobs", `${counted(unknown, "file")} no record, because ${why}: ${inWords(unknown)}`));
  }
  if (missing.length > 0) {
    const fix = "restore these files from an earlier version of the bucket or folder (docs/cluster-operations.md)";
    findings.push(wrong("blobs", `${counted(missing, "record")} no file: ${inWords(missing)}`, fix));
  }
  return findings;
}

async function firstKeys(blobs: ports.Blobs, name: string): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  for await (const key of blobs.keys(`${name}/`)) {
    keys.add(key);
    if (keys.size === COMPARED) break;
  }
  return keys;
}

async function firstIds(collection: ports.Collection<object>): Promise<readonly string[]> {
  const ids: string[] = [];
  let page: ports.Page<object> = await collection.query({ limit: PAGE });
  for (;;) {
    ids.push(...page.items.map(({ id }) => id));
    if (page.next === undefined || ids.length >= COMPARED) return ids;
    page = await collection.query({ limit: PAGE, after: page.next });
  }
}

async function filter(keys: readonly string[], isFound: (key: string) => Promise<boolean>): Promise<readonly string[]> {
  const found: string[] = [];
  for (let from = 0; from < keys.length; from += AT_ONCE) {
    const some = keys.slice(from, from + AT_ONCE);
    const answers = await Promise.all(some.map(isFound));
    found.push(...some.filter((_, index) => answers[index]));
  }
  return found;
}

function counted({ length }: readonly string[], noun: string): string {
  return length === 1 ? `1 ${noun} has` : `${length} ${noun}s have`;
}

function inWords(keys: readonly string[]): string {
  const more = keys.length - SHOWN;
  return keys.slice(0, SHOWN).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
