/** Sets environment variables of this process, and unsets those that are undefined, until it is disposed. */
export function withEnvironment(variables: Readonly<Record<string, string | undefined>>): Disposable {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const);
  const apply = (all: Iterable<readonly [string, string | undefined]>) => {
    for (const [name, value] of all) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
  apply(Object.entries(variables));
  return { [Symbol.dispose]: () => apply(before) };
}

/** No credentials of AWS from this machine. */
export const NO_AWS: Readonly<Record<string, string | undefined>> = {
  AWS_ACCESS_KEY_ID: undefined,
  AWS_SECRET_ACCESS_KEY: undefined,
  AWS_SESSION_TOKEN: undefined,
  AWS_PROFILE: undefined,
  AWS_BEARER_TOKEN_BEDROCK: undefined,
  AWS_CONTAINER_CREDENTIALS_FULL_URI: undefined,
  AWS_CONFIG_FILE: "/dev/null",
  AWS_SHARED_CREDENTIALS_FILE: "/dev/null",
  AWS_EC2_METADATA_DISABLED: "true",
};
