import { defineAdapter, ports } from "@portico/core";
import { redis, whenReady } from "../redis/server.ts";
import { toFactsText } from "@portico/adapters/presence/facts-text";
import { openRegistry } from "./redis/registry.ts";

/** Options of `redisPresence`. */
export interface RedisPresenceOptions {
  /**
   * The sockets of a process that died are found for this time. The process extends it ten times as often. Default: 10,000.
   */
  readonly lifetimeMs?: number;
}

const LIFETIME_MS = 10_000;
const BEATS = 10;
/** Pauses before the registry is read again: a client may name its socket to another process before that process finds it. */
const PAUSES_MS = [50, 150];

/** A registry of sockets in Redis, signed with the instance's key. After an outage, and after Redis was wiped, every process registers its sockets again. */
export const redisPresence = defineAdapter({
  name: "presence/redis",
  port: ports.presence,
  needs: { redis, ids: ports.ids, clock: ports.clock, signing: ports.signing },
  open(
    { redis: { prefix, commands, refuse }, ids, clock, signing },
    { lifetimeMs = LIFETIME_MS }: RedisPresenceOptions,
    scope,
  ): ports.Presence {
    if (!Number.isInteger(lifetimeMs) || lifetimeMs < BEATS) {
      throw new TypeError(`The lifetime of sockets is a whole number of milliseconds from ${BEATS}`);
    }
    const process = ids.id("proc_");
    const registry = openRegistry({ connection: commands, prefix, process, lifetimeMs, signing });
    /** Facts as JSON, by socket. */
    const held = new Map<string, string>();
    /** Sockets that changed since the registry was written. */
    let changed = new Set<string>();
    /** Whether the registry may lack sockets, or have more than this process holds. */
    let isDoubtful = false;
    let isClosed = false;
    let writing: Promise<void> | undefined;

    const writeAll = async (): Promise<void> => {
      while ((changed.size > 0 || isDoubtful) && commands.status === "ready") {
        const [sockets, isWhole] = [changed, isDoubtful];
        changed = new Set();
        isDoubtful = false;
        try {
          if (isWhole) await registry.replace(held);
          else {
            const present = [...sockets].flatMap((id) => (held.has(id) ? [[id, held.get(id)!] as const] : []));
            await registry.change(
              present,
              [...sockets].filter((id) => !held.has(id)),
            );
          }
        } catch {
          // The next heartbeat tries again.
          isDoubtful = true;
          return;
        }
      }
      if (changed.size === 0) return;
      // While Redis is away, the changes need not be counted.
      changed = new Set();
      isDoubtful = true;
    };
    const write = (): void => {
      // After the current turn of the event loop, so that its changes are one command.
      writing ??= new Promise<void>((resolve) => setImmediate(resolve)).then(writeAll).finally(() => void (writing = undefined));
    };

    let seal: string | undefined;
    const beat = async (): Promise<void> => {
      // After the key was replaced, other processes accept the earlier signatures only for a time.
      const before = seal;
      seal = await registry.seal().catch(() => before);
      isDoubtful ||= seal !== before && held.size > 0;
      if (isDoubtful) return write();
      if (held.size === 0 || commands.status !== "ready") return;
      // Without an answer, the connection is lost, and is looked at again when it is ready.
      if (await registry.extend().catch(() => true)) return;
      isDoubtful = true;
      write();
    };
    let heartbeat: ports.Timer;
    const keepBeating = (): void => {
      heartbeat = clock.after(lifetimeMs / BEATS, keepBeating);
      void beat();
    };
    keepBeating();
    whenReady(commands, () => void (isClosed || beat()));

    scope.onClose(async () => {
      isClosed = true;
      heartbeat.cancel();
      await writing;
      // Otherwise its lifetime ends.
      await registry.remove().catch(() => {});
    });

    return {
      process,
      hold(socketId, facts) {
        const text = toFactsText(facts);
        if (isClosed) return;
        held.set(socketId, text);
        changed.add(socketId);
        write();
      },
      release(socketId) {
        if (isClosed || !held.delete(socketId)) return;
        changed.add(socketId);
        write();
      },
      async locate(socketId) {
        if (isClosed) throw new ports.PresenceUnavailable("The registry of sockets is closed");
        const own = held.get(socketId);
        if (own !== undefined) return { process, facts: JSON.parse(own) };
        const look = () =>
          registry.locate(socketId).catch((cause: unknown) => {
            throw new ports.PresenceUnavailable("The registry of sockets cannot be read", { cause });
          });
        let found = await look();
        for (const pause of PAUSES_MS) {
          if (found) break;
          await clock.sleep(pause);
          found = await look();
        }
        // A registry that still lists what this process released a moment ago.
        if (!found || found.process === process) return undefined;
        if (found.facts !== undefined) return { process: found.process, facts: JSON.parse(found.facts) };
        refuse("presence");
        return undefined;
      },
    };
  },
});
