/** The package has no types. This declares the used part of its result. */
declare module "parse-prometheus-text-format" {
  export interface Sample {
    readonly labels?: Readonly<Record<string, string>>;
    readonly value: string;
  }
  /** The result for a text without types. A name is repeated if another name comes between its lines. */
  export default function parsePrometheusTextFormat(
    text: string,
  ): readonly { readonly name: string; readonly metrics: readonly Sample[] }[];
}
