/**
 * Returns the URL. Throws TypeError for another text, and for parameters about TLS beside the option `tls`: the driver lets the URL
 * override everything else, so a forgotten `sslmode=disable` would switch TLS off. The message does not quote the URL.
 */
export function checkConnectionUrl(text: string, hasTls: boolean): string {
  // A URL for a local socket may have no host: `postgres://user@/database?host=/var/run/postgresql`.
  const url = URL.parse(text) ?? URL.parse(text.replace("@/", "@localhost/"));
  if (!url || !/^(?:postgres(?:ql)?|socket):$/.test(url.protocol))
    throw new TypeError("The url of a PostgreSQL store must be a connection URL");
  if (hasTls && [...url.searchParams.keys()].some((key) => key.startsWith("ssl")))
    throw new TypeError("A PostgreSQL store takes TLS from its option tls or from its url, not from both");
  return text;
}
