import type { ports } from "@portico/core";
import type { Redis } from "ioredis";
import { fromSigned, toSigned } from "../../redis/signed-text.ts";

/** HSET with this many sockets at a time. */
const PAGE = 1000;
/** Longer facts in Redis are not read. */
const MOST_BYTES = 1024 * 1024;

/**
 * KEYS: the set of processes. ARGV: the beginning of the keys of their sockets, a socket, the most bytes of facts. Answers process and
 * facts. Processes whose lifetime ended leave the set.
 */
const LOCATE = `
for _, process in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local facts = redis.call('HGET', ARGV[1] .. process, ARGV[2])
  if facts and #facts <= tonumber(ARGV[3]) then return { process, facts } end
  if redis.call('EXISTS', ARGV[1] .. process) == 0 then redis.call('SREM', KEYS[1], process) end
end
return false`;

/** Where a registry is, and who writes. */
export interface RegistryPlace {
  readonly connection: Redis;
  readonly prefix: string;
  readonly process: string;
  /** All sockets of a process have one lifetime: extending it costs one command, however many there are. */
  readonly lifetimeMs: number;
  readonly signing: ports.Signing;
}

/** What the registry says of a socket. `facts` is undefined if this instance did not sign them for this process and socket. */
export interface FoundSocket {
  readonly process: string;
  readonly facts: string | undefined;
}

/** The sockets of this process in Redis: one hash per process, which expires unless it is extended. All calls reject as ioredis does. */
export function openRegistry({ connection, prefix, process, lifetimeMs, signing }: RegistryPlace) {
  const processes = `${prefix}:presence:processes`;
  const socketsOf = `${prefix}:presence:sockets:`;
  const own = socketsOf + process;
  const placeOf = (holder: string, socketId: string): string => `${socketsOf}${holder} ${socketId}`;

  /** Atomic, so that no process finds half of it. */
  const change = async (held: Iterable<readonly [string, string]>, released: readonly string[], isWhole: boolean) => {
    const pairs = await Promise.all(
      [...held].map(async ([id, facts]) => [id, await toSigned(signing, placeOf(process, id), facts)]),
    );
    const changes = connection.multi();
    if (isWhole) changes.del(own);
    if (released.length > 0) changes.hdel(own, ...released);
    for (let from = 0; from < pairs.length; from += PAGE) changes.hset(own, ...pairs.slice(from, from + PAGE).flat());
    if (pairs.length > 0) changes.sadd(processes, process);
    const results = await changes.pexpire(own, lifetimeMs).exec();
    const failed = results?.find(([error]) => error)?.[0];
    if (!results || failed) throw failed ?? new Error("Redis executed no transaction");
  };

  return {
    /** Some sockets changed. */
    change: (held: Iterable<readonly [string, string]>, released: readonly string[]) => change(held, released, false),
    /** Exactly these sockets. */
    replace: (held: Iterable<readonly [string, string]>) => change(held, [], true),
    /** False if the sockets are not there: they expired, or Redis was wiped. */
    extend: async (): Promise<boolean> => (await connection.pexpire(own, lifetimeMs)) === 1,
    async remove(): Promise<void> {
      await connection.multi().unlink(own).srem(processes, process).exec();
    },
    async locate(socketId: string): Promise<FoundSocket | undefined> {
      const found = (await connection.eval(LOCATE, 1, processes, socketsOf, socketId, MOST_BYTES)) as [string, string] | null;
      if (!found) return undefined;
      const [holder, facts] = found;
      return { process: holder, facts: await fromSigned(signing, placeOf(holder, socketId), facts) };
    },
    /** Changes when another key signs: what was written before must be written again. */
    seal: (): Promise<string> => toSigned(signing, own, ""),
  };
}
