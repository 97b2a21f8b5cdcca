import { Check } from '../../ui/ui'

/** What is chosen, of a form that has such choices. */
export const namesOf = (form: FormData, key: string) => form.getAll(key).map(String)

/** Several of some names. */
export function Choices({ label, name, all, chosen }: { label: string; name: string; all: string[]; chosen: string[] }) {
  return (
    <fieldset className="stack">
      <legend className="label">{label}</legend>
      <div className="row">
        {all.map((one) => (
          <Check key={one} name={name} value={one} defaultChecked={chosen.includes(one)}>
            {one}
          </Check>
        ))}
      </div>
    </fieldset>
  )
}
