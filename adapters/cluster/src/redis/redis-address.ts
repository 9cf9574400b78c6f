/** Where a Redis server is, and the user. */
export interface RedisAddress {
  readonly isEncrypted: boolean;
  readonly options: {
    readonly host: string;
    readonly port: number;
    readonly db: number;
    readonly username?: string;
    readonly password?: string;
  };
}

/** Reads `redis://user:password@host:port/database`, or `rediss://…` for TLS. Throws TypeError, whose message does not quote the URL. */
export function toRedisAddress(url: string): RedisAddress {
  const invalid = new TypeError("The url of a Redis server must be redis://user:password@host:port/database, or rediss://…");
  if (!URL.canParse(url)) throw invalid;
  const { protocol, hostname, port, username, password, pathname } = new URL(url);
  const database = /^\/?(\d{0,5})$/.exec(pathname)?.[1];
  if (!/^rediss?:$/.test(protocol) || hostname === "" || database === undefined) throw invalid;
  return {
    isEncrypted: protocol === "rediss:",
    options: {
      host: hostname.replace(/^\[(.*)\]$/, "$1"),
      port: Number(port || 6379),
      db: Number(database),
      ...(username !== "" && { username: decodeURIComponent(username) }),
      ...(password !== "" && { password: decodeURIComponent(password) }),
    },
  };
}

/** Returns the prefix. Throws TypeError for an invalid one. */
export function checkRedisPrefix(prefix: string): string {
  if (/^[\w.:-]{1,64}$/.test(prefix)) return prefix;
  throw new TypeError("A prefix of Redis keys is 1-64 letters, digits, _, ., : and -");
}
