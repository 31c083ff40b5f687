# SPDX-License-Identifier: Apache-2.0
"""Says in one sentence what each quantity of a run's summary is; docs/reference/quantities.md lists the same."""

from __future__ import annotations

#: Name in the JSON document to description.
DESCRIPTIONS = {
    "maxAbsError": "Largest absolute difference between outputs of the placed program and a float64 run.",
    "eagerMaxAbsError": "Largest absolute difference between eager PyTorch and a float64 run.",
    "errorBound": "Largest error that counts as right: twice eager's own and 1e-5 of the largest output.",
    "numNests": "Parallel loop nests of the program, hoisted ones included.",
    "distinctNests": "Nests with different structural keys.",
    "nestsOnPim": "Nests placed on PIM.",
    "nestsOnHost": "Nests kept on the host, hoisted ones included.",
    "nestsHoisted": "Nests that depend on parameters only and run once, outside the timed program.",
    "hostTime": "Time of all nests, hoisted ones left out, had they run on the host.",
    "hostTimeOfHostNests": "Host time of the nests that were kept on the host.",
    "hostTimeOfPimNests": "Host time of the nests that were placed on PIM.",
    "pimTime": "PIM time of the nests that were placed on PIM.",
    "predictedPimTime": "PIM time by equation PL-3 of the nests that were placed on PIM.",
    "crossingTime": "Time of what crosses between host and PIM: flushes, fetches, launches and returns.",
    "linkBytes": "Bytes that cross the external link between host and stack.",
    "dramBytes": "Bytes that PIM nests move between their cores and the DRAM of the stack.",
    "hostDramBytes": "Bytes between the host's last cache and its DRAM, had all nests run on the host.",
    "modelledHostTime": "Time of all nests, hoisted ones left out, had they run on the modelled host.",
    "modelledHostTimeOfHostNests": "Time on the modelled host of the nests that were kept on the host.",
    "modelledHostTimeOfPimNests": "Time on the modelled host of the nests that were placed on PIM.",
    "modelledHostDramBytes": "Bytes between the modelled host and its DRAM, had all nests run there.",
    "modelledHostDramBytesOfHostNests": "The same for the nests that were kept on the host.",
    "energy": "Equation EN-2: energy of the nests where they were placed, and of the bytes over the link.",
    "pimEnergy": "Equation EN-1 over the nests that were placed on PIM.",
    "linkEnergy": "Energy of the bytes that cross the external link.",
    "modelledHostEnergy": "Equation EN-1 over all nests, had they run on the modelled host.",
    "modelledHostEnergyOfHostNests": "The same for the nests that were kept on the host.",
    "speedup": "Equation SU-1: the modelled host alone over host nests, PIM nests and crossings together.",
    "eagerTime": "Time of the same model in eager PyTorch on the host.",
    "profiledNests": "Distinct nests profiled in this run.",
    "reusedProfiles": "Distinct nests whose profile came from the database.",
    "simulatedNests": "Simulations done for this run: distinct nests, on PIM and on the modelled host.",
    "reusedSimulations": "Simulations whose result came from the database.",
}
