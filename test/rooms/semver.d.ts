declare module "semver" {
  /** What the tests use of it. */
  const semver: {
    minVersion(range: string): { readonly version: string } | null;
    satisfies(version: string, range: string): boolean;
  };
  export default semver;
}
