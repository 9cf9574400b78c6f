import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { ports } from "@portico/core";
import type { Client } from "../../records/postgres/connections.ts";
import { isPooled } from "../../records/postgres/pooler.ts";
import type { PostgresStore } from "../../records/postgres/store.ts";

/** The dependencies of a process's lease. */
export interface ProcessLeaseOptions {
  readonly store: Pick<PostgresStore, "schema" | "dedicated">;
  readonly log: ports.Log;
  /** The ID of this process, for others. */
  readonly process: string;
  /** How long a process keeps its work without a sign of life. */
  readonly leaseMs: number;
  /** This process has a lease, or has it again after its connection was lost. */
  onHeld(lease: number): void;
  /** Other processes may have been given this process's work. It has a new lease, or will have one. */
  onLost(): void;
  /** Another process is lost. Its work can be given to others. */
  onGone(lease: number): void;
}

/** Renewals per lease: a process that is slow for a while keeps its work. */
const RENEWALS_PER_LEASE = 3;
/** Pause between two looks at the other processes. */
const LOOK_MS = 300;
const RECONNECT_MS = 200;

/** The lease's connection does not reach the server itself. */
export class LeaseBehindPooler extends Error {
  override readonly name = "LeaseBehindPooler";
  constructor() {
    super(
      "The engine's lease needs a connection to PostgreSQL itself, and this one goes through a pooler: give the server's own address as directUrl (cluster.postgres.directUrl)",
    );
  }
}

interface Neighbour {
  readonly lease: string;
  /** It gave no sign of life for the whole lease. */
  readonly isLate: boolean;
  /** The session that held its lock has ended, although the server has not. */
  readonly isFree: boolean;
}

/**
 * The lease of this process, and the end of others. A process holds a lock of the database with its session, so that its death is
 * noticed at once, and renews a row, so that a frozen process is noticed. The database's clock decides.
 *
 * A server that restarts ends all sessions. Therefore a free lock means something only in the same run of the server, and a late row
 * only to a process whose own session has lasted longer than a lease: the others had that time to come back.
 */
export class ProcessLease {
  readonly #options: ProcessLeaseOptions;
  readonly #space: number;
  readonly #processes: string;
  readonly #closing = new AbortController();
  #client: Client | undefined;
  #lease = 0;
  /** When the last successful renewal was sent, on this machine's monotonic clock. */
  #renewedAt = Number.NEGATIVE_INFINITY;
  /** The server's process of the session that has the lease's lock. */
  #session = 0;
  /** When the present session began, by the database's clock, and in which run of the server. */
  #since: Date | undefined;
  #server = "";
  /** Processes whose lock was free at the last look. */
  #suspects = new Set<string>();
  readonly #waiting = new Set<"renew" | "look">();
  #working: Promise<unknown> = Promise.resolve();
  #reconnecting: Promise<void> | undefined;
  #timers: NodeJS.Timeout[] = [];

  constructor(options: ProcessLeaseOptions) {
    this.#options = options;
    const { schema } = options.store;
    this.#processes = `"${schema}"."_engine_processes"`;
    this.#space = Buffer.from(hash("sha256", `portico engine ${schema}`, "buffer")).readInt32BE();
  }

  /** The number of the present lease; 0 without a lease. */
  get number(): number {
    return this.#lease;
  }

  /** Whether the lease is held in a session that has not ended, as far as this process knows. */
  get isHeld(): boolean {
    return this.#lease !== 0 && this.#client !== undefined;
  }

  /** Milliseconds since the last successful renewal was sent; Infinity before the first one. */
  get ageMs(): number {
    return performance.now() - this.#renewedAt;
  }

  /**
   * Why other processes may be given this process's work; undefined while they may not. The database counts the lease from when it
   * received the renewal, so it has not expired there before it has expired here.
   */
  get fault(): string | undefined {
    if (this.#client === undefined) return "no connection to PostgreSQL";
    if (this.#lease === 0) return "lost to another process";
    return this.ageMs < this.#options.leaseMs ? undefined : "not renewed in time";
  }

  /** Take a lease. Throws the driver's error. */
  async open(): Promise<void> {
    await this.#connect();
    const { leaseMs } = this.#options;
    this.#timers = [
      setInterval(() => this.#do("renew"), leaseMs / RENEWALS_PER_LEASE).unref(),
      setInterval(() => this.#do("look"), Math.min(LOOK_MS, leaseMs / RENEWALS_PER_LEASE)).unref(),
    ];
  }

  /** Resolves when it is known whether this process still has its lease, or its connection is lost. */
  async check(): Promise<void> {
    this.#do("renew");
    await this.#working;
  }

  /** Give the lease up. Never rejects. */
  async close(): Promise<void> {
    this.#closing.abort();
    for (const timer of this.#timers) clearInterval(timer);
    await this.#working;
    await this.#reconnecting;
    const client = this.#client;
    this.#client = undefined;
    await client?.query(`DELETE FROM ${this.#processes} WHERE lease = $1`, [this.#lease]).catch(() => {});
    await client?.end().catch(() => {});
  }

  /**
   * One task after another. A failure ends the connection. A task that waits is not added again, so that a slow server gets no more
   * looks than it answers, and renewals do not wait behind them.
   */
  #do(task: "renew" | "look"): void {
    if (this.#waiting.has(task)) return;
    this.#waiting.add(task);
    this.#working = this.#working.then(async () => {
      this.#waiting.delete(task);
      if (!this.#client || this.#closing.signal.aborted) return;
      try {
        await (task === "renew" ? this.#renew() : this.#look());
      } catch {
        this.#lose();
      }
    });
  }

  async #connect(): Promise<void> {
    const { store, process, leaseMs } = this.#options;
    const client = store.dedicated("engine lease", Math.max(500, leaseMs / RENEWALS_PER_LEASE));
    client.on("error", () => {});
    const sentAt = performance.now();
    try {
      await client.connect();
      // A pooler may give the session to other clients, and with it the lock: living processes would lose their work.
      if (await isPooled(client)) throw new LeaseBehindPooler();
      this.#server = await serverRun(client, store.schema);
      const own = await client.query<{ now: Date; session: number }>("SELECT now() AS now, pg_backend_pid() AS session");
      const { now, session } = own.rows[0]!;
      this.#since = now;
      if (this.#lease === 0 || !(await this.#resume(client))) {
        const { rows } = await client.query<{ lease: string }>(`SELECT nextval('"${store.schema}"."_engine_lease"') AS lease`);
        const lease = Number(rows[0]!.lease);
        await client.query("SELECT pg_advisory_lock($1, $2)", [this.#space, lease]);
        await client.query(`INSERT INTO ${this.#processes} VALUES ($1, $2, $3, ${this.#until})`, [lease, process, this.#server]);
        this.#lease = lease;
      }
      this.#session = session;
    } catch (error) {
      client.end().catch(() => {});
      throw error;
    }
    this.#suspects.clear();
    this.#renewedAt = sentAt;
    this.#client = client;
    client.on("end", () => this.#client === client && this.#lose());
    this.#options.onHeld(this.#lease);
  }

  /** Keep the present lease in a new session. False if another process has taken it away. */
  async #resume(client: Client): Promise<boolean> {
    // A network that lost the last connection may not have told the server: that session would keep the lock.
    await client.query(
      `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE pid = $3 AND locktype = 'advisory'
         AND classid = $1::int::oid AND objid = $2::int::oid AND objsubid = 2`,
      [this.#space, this.#lease, this.#session],
    );
    await client.query("SELECT pg_advisory_lock($1, $2)", [this.#space, this.#lease]);
    const text = `UPDATE ${this.#processes} SET until = ${this.#until}, server = $2 WHERE lease = $1`;
    const isKept = (await client.query(text, [this.#lease, this.#server])).rowCount === 1;
    if (isKept) return true;
    this.#tellLost();
    return false;
  }

  get #until(): string {
    return `now() + ${this.#options.leaseMs} * interval '1 millisecond'`;
  }

  async #renew(): Promise<void> {
    const sentAt = performance.now();
    const { rowCount } = await this.#client!.query(`UPDATE ${this.#processes} SET until = ${this.#until} WHERE lease = $1`, [
      this.#lease,
    ]);
    if (rowCount === 1) return void (this.#renewedAt = sentAt);
    this.#tellLost();
    this.#lose();
  }

  async #look(): Promise<void> {
    const client = this.#client!;
    const { leaseMs, onGone } = this.#options;
    const { rows } = await client.query<Neighbour>(
      `SELECT lease, greatest(until, $3::timestamptz + ${leaseMs} * interval '1 millisecond') < now() AS "isLate",
         CASE WHEN server = $4 AND pg_try_advisory_lock($1, lease::int) THEN pg_advisory_unlock($1, lease::int) ELSE false END AS "isFree"
       FROM ${this.#processes} WHERE lease <> $2`,
      [this.#space, this.#lease, this.#since, this.#server],
    );
    // A process that lost its connection gets the time between two looks to come back.
    const free = rows.filter(({ isFree }) => isFree).map(({ lease }) => lease);
    const gone = rows.filter(({ lease, isLate }) => isLate || (free.includes(lease) && this.#suspects.has(lease)));
    this.#suspects = new Set(free);
    for (const { lease, isLate } of gone) {
      // Its row first: from then on, no commit relies on the lease.
      const stillGone = isLate ? "until < now()" : "pg_try_advisory_xact_lock($2, lease::int)";
      const values = isLate ? [lease] : [lease, this.#space];
      // A commit that relies on the lease keeps the row. It ends soon: the server ends transactions of frozen processes.
      const free = `SELECT lease FROM ${this.#processes} WHERE lease = $1 AND ${stillGone} FOR UPDATE SKIP LOCKED`;
      const { rowCount } = await client.query(`DELETE FROM ${this.#processes} WHERE lease = (${free})`, values);
      if (rowCount === 1) onGone(Number(lease));
    }
  }

  #tellLost(): void {
    this.#lease = 0;
    this.#options.log.error("This process was not heard of for too long, and its work was given to others");
    this.#options.onLost();
  }

  /** The session is of no use any more. */
  #lose(): void {
    const client = this.#client;
    this.#client = undefined;
    client?.end().catch(() => {});
    if (!this.#closing.signal.aborted) this.#reconnecting ??= this.#reconnect();
  }

  async #reconnect(): Promise<void> {
    const { signal } = this.#closing;
    while (!this.#client && !signal.aborted) {
      await this.#connect().catch(() => sleep(RECONNECT_MS, undefined, { signal, ref: false }).catch(() => {}));
    }
    this.#reconnecting = undefined;
  }
}

/** The ID of the server's present run. It is new after a restart, a crash, and a change of the primary. */
async function serverRun(client: Client, schema: string): Promise<string> {
  const text = `
    SELECT run || ' ' || extract(epoch FROM pg_postmaster_start_time()) AS run FROM "${schema}"."_engine_server"`;
  const found = (await client.query<{ run: string }>(text)).rows[0];
  if (found) return found.run;
  await client.query(`INSERT INTO "${schema}"."_engine_server" VALUES (1, gen_random_uuid()::text) ON CONFLICT DO NOTHING`);
  return (await client.query<{ run: string }>(text)).rows[0]!.run;
}
