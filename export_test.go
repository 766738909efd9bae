package headway

// RaceEnabled is raceEnabled for the tests of package headway_test.
const RaceEnabled = raceEnabled
