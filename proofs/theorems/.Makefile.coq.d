Market.vo Market.glob Market.v.beautified Market.required_vo: Market.v 
Market.vio: Market.v 
Market.vos Market.vok Market.required_vos: Market.v 
Duality.vo Duality.glob Duality.v.beautified Duality.required_vo: Duality.v Market.vo
Duality.vio: Duality.v Market.vio
Duality.vos Duality.vok Duality.required_vos: Duality.v Market.vos
SharingIncentive.vo SharingIncentive.glob SharingIncentive.v.beautified SharingIncentive.required_vo: SharingIncentive.v Market.vo
SharingIncentive.vio: SharingIncentive.v Market.vio
SharingIncentive.vos SharingIncentive.vok SharingIncentive.required_vos: SharingIncentive.v Market.vos
EqualEfficiency.vo EqualEfficiency.glob EqualEfficiency.v.beautified EqualEfficiency.required_vo: EqualEfficiency.v Market.vo
EqualEfficiency.vio: EqualEfficiency.v Market.vio
EqualEfficiency.vos EqualEfficiency.vok EqualEfficiency.required_vos: EqualEfficiency.v Market.vos
Equilibrium.vo Equilibrium.glob Equilibrium.v.beautified Equilibrium.required_vo: Equilibrium.v Market.vo Duality.vo
Equilibrium.vio: Equilibrium.v Market.vio Duality.vio
Equilibrium.vos Equilibrium.vok Equilibrium.required_vos: Equilibrium.v Market.vos Duality.vos
Trading.vo Trading.glob Trading.v.beautified Trading.required_vo: Trading.v Market.vo
Trading.vio: Trading.v Market.vio
Trading.vos Trading.vok Trading.required_vos: Trading.v Market.vos
Exchange.vo Exchange.glob Exchange.v.beautified Exchange.required_vo: Exchange.v Market.vo Trading.vo Duality.vo EqualEfficiency.vo Equilibrium.vo
Exchange.vio: Exchange.v Market.vio Trading.vio Duality.vio EqualEfficiency.vio Equilibrium.vio
Exchange.vos Exchange.vok Exchange.required_vos: Exchange.v Market.vos Trading.vos Duality.vos EqualEfficiency.vos Equilibrium.vos
Vertices.vo Vertices.glob Vertices.v.beautified Vertices.required_vo: Vertices.v Market.vo Duality.vo
Vertices.vio: Vertices.v Market.vio Duality.vio
Vertices.vos Vertices.vok Vertices.required_vos: Vertices.v Market.vos Duality.vos
